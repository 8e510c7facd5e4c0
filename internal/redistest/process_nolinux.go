//go:build !linux

package redistest

import "os/exec"

// endWithParent does nothing: only Linux can tie a child to its parent. A test
// process that is killed here leaves its servers behind.
func endWithParent(*exec.Cmd) {}

// isStopped believes it: a signal is delivered soon enough.
func isStopped(int) bool { return true }

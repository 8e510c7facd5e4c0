//go:build unix && !linux

package main

import "syscall"

// endWithParent can do nothing: only Linux tells a process that its parent has died.
func endWithParent(*syscall.SysProcAttr) {}

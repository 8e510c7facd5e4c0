//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// endWithParent can do nothing: only Linux tells a process that its parent has died.
func endWithParent(*syscall.SysProcAttr) {}

// stops is nil: only Linux tells of a process that is stopped and not of one that has ended.
func (g *group) stops() <-chan os.Signal { return nil }
func (g *group) isStopped() bool         { return false }

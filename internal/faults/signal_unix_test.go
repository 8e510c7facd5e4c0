//go:build unix

package faults

import (
	"os"
	"syscall"
)

func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error  { return p.Signal(syscall.SIGCONT) }

// dump ends a Go process, which writes down what its goroutines do.
func dump(p *os.Process) error { return p.Signal(syscall.SIGQUIT) }

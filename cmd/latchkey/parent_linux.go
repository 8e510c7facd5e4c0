package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// endWithParent has the command killed when latchkey is: nobody would renew its lock.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// stops receives when the command may have been stopped.
func (g *group) stops() <-chan os.Signal {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGCHLD)
	select {
	case changed <- syscall.SIGCHLD: // it may have been stopped before
	default:
	}
	return changed
}

// isStopped reports once that the command was stopped. It leaves its end to [exec.Cmd.Wait].
func (g *group) isStopped() bool {
	const byPID = 1
	var about [128]byte // siginfo_t, which stays as it is where nothing is to be told
	_, _, failed := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(g.cmd.Process.Pid), uintptr(unsafe.Pointer(&about)),
		syscall.WSTOPPED|syscall.WNOHANG, 0, 0)
	return failed == 0 && about != [len(about)]byte{}
}

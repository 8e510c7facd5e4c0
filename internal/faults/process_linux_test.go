package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill the child when the thread that starts it ends:
// a worker that is stopped would not notice that its standard input is closed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// isStopped says whether a process rests after SIGSTOP.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, ok := bytes.Cut(stat, []byte(") ")) // "pid (name) state …"
	return err == nil && ok && len(after) > 0 && after[0] == 'T'
}

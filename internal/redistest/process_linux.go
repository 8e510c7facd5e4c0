package redistest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill the child when the thread that starts it ends.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// isStopped says whether a process rests after SIGSTOP.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, ok := bytes.Cut(stat, []byte(") ")) // "pid (name) state …"
	return ok && len(after) > 0 && after[0] == 'T'
}

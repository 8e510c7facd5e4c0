//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// ending are the signals that end a latchkey that waits for a lock.
var ending = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// forwarded are those that a command gets.
var forwarded = append([]os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}, ending...)

// group is the processes of a command: itself and what it starts, or itself only, at a
// terminal. There it shares the group of latchkey, so that it can read, and gets itself what is typed.
type group struct {
	cmd      *exec.Cmd
	terminal bool
}

func newGroup(cmd *exec.Cmd) *group {
	g := &group{cmd, isTerminal(cmd.Stdin)}
	if !g.terminal && !signal.Ignored(syscall.SIGTSTP) {
		// Ctrl-Z does not reach the command, which would go on while nobody renews its lock.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTSTP)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !g.terminal}
	endWithParent(cmd.SysProcAttr)
	return g
}

// isTerminal says yes to other devices, too: to share their group does no harm.
func isTerminal(input io.Reader) bool {
	f, isFile := input.(*os.File)
	if !isFile {
		return false
	}
	stat, err := f.Stat()
	if err != nil || stat.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(stat, null)
}

// forward sends a signal. The error is [os.ErrPermission] if the command does not get it, for it has become another
// user's: by sudo, for example.
func (g *group) forward(s os.Signal) error {
	var err error
	if !g.terminal || s != syscall.SIGINT && s != syscall.SIGQUIT { // else it was typed
		err = g.send(s.(syscall.Signal))
	}
	if slices.Contains(ending, s) {
		_ = g.send(syscall.SIGCONT) // one that is stopped does not end
	}
	return err
}

func (g *group) end() error  { return g.forward(syscall.SIGTERM) }
func (g *group) kill() error { return g.send(syscall.SIGKILL) }

func (g *group) send(s syscall.Signal) error {
	if g.terminal {
		return g.cmd.Process.Signal(s)
	}
	// A group takes a signal that one of its processes may get.
	return errors.Join(syscall.Kill(-g.cmd.Process.Pid, s), g.cmd.Process.Signal(syscall.Signal(0)))
}

// awaitEnd returns when the group is empty, or was killed.
func (g *group) awaitEnd(killed <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !g.terminal && syscall.Kill(-g.cmd.Process.Pid, 0) != syscall.ESRCH {
		select {
		case <-tick.C:
		case <-killed:
			return
		}
	}
}

// exitOf is the exit code of a command that has ended.
func exitOf(cmd *exec.Cmd, err error) (int, error) {
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return 0, err
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return exitSignal + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

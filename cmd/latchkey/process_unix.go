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
)

// ending are the signals that end a latchkey that waits for a lock.
var ending = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// forwarded are those that a command gets.
var forwarded = append([]os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}, ending...)

// group is the processes of a command: itself and what it starts, or itself only, where there is a
// terminal. There it shares the group of latchkey, so that it can read, and gets itself what is typed.
type group struct {
	cmd      *exec.Cmd
	terminal bool
	left     bool // the group is empty, and what the command has started is in others
	// empty is closed when all of them have ended: whatever a command starts inherits the end of a pipe, as it does flock's descriptor.
	empty chan struct{}
}

// startGroup starts a command. An error means that nothing runs.
func startGroup(cmd *exec.Cmd) (*group, error) {
	g := &group{cmd: cmd, terminal: hasTerminal(), empty: make(chan struct{})}
	if !g.terminal && !signal.Ignored(syscall.SIGTSTP) {
		// Ctrl-Z does not reach the command, which would go on while nobody renews its lock.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTSTP)
	}
	// The command inherits it beside what latchkey has inherited, such as sockets from systemd: cmd.ExtraFiles would be in their place.
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		return nil, err
	}
	syscall.CloseOnExec(pipe[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !g.terminal}
	endWithParent(cmd.SysProcAttr)
	err := cmd.Start()
	_ = syscall.Close(pipe[1])
	go func() {
		read := os.NewFile(uintptr(pipe[0]), "")
		_, _ = io.Copy(io.Discard, read)
		_ = read.Close()
		close(g.empty)
	}()
	return g, err
}

// hasTerminal reports that latchkey can be typed to: what is not in its group would be stopped when it reads there.
func hasTerminal() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = terminal.Close()
	return true
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
	if g.terminal || g.left {
		return g.cmd.Process.Signal(s)
	}
	// A group takes a signal that one of its processes may get.
	return errors.Join(syscall.Kill(-g.cmd.Process.Pid, s), g.cmd.Process.Signal(syscall.Signal(0)))
}

// exit is the exit code of the command, which has ended.
func (g *group) exit(err error) (int, error) {
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return 0, err
	}
	// If all have left the group, its number may become another's.
	g.left = !g.terminal && errors.Is(syscall.Kill(-g.cmd.Process.Pid, 0), syscall.ESRCH)
	if status := g.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return exitSignal + int(status.Signal()), nil
	}
	return g.cmd.ProcessState.ExitCode(), nil
}

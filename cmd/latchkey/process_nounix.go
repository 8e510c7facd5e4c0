//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

var (
	ending    = []os.Signal{os.Interrupt}
	forwarded = ending
)

// group is the process of a command, where there are no process groups. It gets itself
// what is typed.
type group struct {
	cmd   *exec.Cmd
	empty chan struct{} // closed: what the command has started is not known
}

// startGroup starts a command. An error means that nothing runs.
func startGroup(cmd *exec.Cmd) (*group, error) {
	g := &group{cmd, make(chan struct{})}
	close(g.empty)
	return g, cmd.Start()
}

func (g *group) forward(os.Signal) error { return nil }
func (g *group) end() error              { return g.kill() } // nothing asks it to end
func (g *group) kill() error             { return g.cmd.Process.Kill() }
func (g *group) stops() <-chan os.Signal { return nil }
func (g *group) isStopped() bool         { return false }

// exit is the exit code of the command, which has ended.
func (g *group) exit(err error) (int, error) {
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return 0, err
	}
	return g.cmd.ProcessState.ExitCode(), nil
}

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
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) *group { return &group{cmd} }

func (g *group) forward(os.Signal) error  { return nil }
func (g *group) end() error               { return g.kill() } // nothing asks it to end
func (g *group) kill() error              { return g.cmd.Process.Kill() }
func (g *group) awaitEnd(<-chan struct{}) {}

// exitOf is the exit code of a command that has ended.
func exitOf(cmd *exec.Cmd, err error) (int, error) {
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

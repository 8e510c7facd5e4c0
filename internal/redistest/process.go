package redistest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// process is one run of redis-server.
type process struct {
	cmd    *exec.Cmd
	log    string        // the file that holds its output
	from   int64         // where in log this run begins
	exited chan struct{} // closed when it has ended and was reaped
}

// startProcess runs redis-server in dir.
//
// Linux ends the child with the thread that started it (see endWithParent), so
// one goroutine keeps that thread for as long as the child runs.
func startProcess(binary, dir string, env, args []string) (*process, error) {
	path := filepath.Join(dir, "redis.log")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(binary, args...), log: path, exited: make(chan struct{})}
	if info, err := out.Stat(); err == nil {
		p.from = info.Size()
	}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	endWithParent(p.cmd)

	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		defer out.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is killed, or its log says why it went
		}
	}()
	return p, <-started
}

// running says whether the process has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// output returns what this run has written.
func (p *process) output() string {
	all, err := os.ReadFile(p.log)
	if err != nil || int64(len(all)) < p.from {
		return ""
	}
	return string(bytes.TrimSpace(all[p.from:]))
}

// portTaken says that the process gave up because another one has its port.
func (p *process) portTaken() bool {
	return !p.running() && strings.Contains(p.output(), "Address already in use")
}

package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// process is a worker as the test sees it.
type process struct {
	setup   setup
	cmd     *exec.Cmd
	stderr  bytes.Buffer
	exited  chan struct{}
	failure error // of the process, when it has exited

	mu     sync.Mutex // stdin
	stdin  io.WriteCloser
	states chan string
	note   string // with its last state
}

// startProcess runs a worker, and returns when it is ready. It dies with the test.
// What it reports goes to the history, what it asks to the store.
func startProcess(tb testing.TB, s setup, h *history, st *store) *process {
	tb.Helper()
	config, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	if s.Beside {
		binary = *beside
	}
	p := &process{setup: s, cmd: exec.Command(binary), exited: make(chan struct{}), states: make(chan string, 8)}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(config))
	p.cmd.Stderr = &p.stderr
	endWithParent(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		// Linux ends the child with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.listen(stdout, h, st)
			p.failure = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.kill)
	p.await(tb, "ready")
	return p
}

// listen reads what the worker says until it ends.
func (p *process) listen(stdout io.Reader, h *history, st *store) {
	defer close(p.states)
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadBytes('\n')
		var m message
		if err != nil || json.Unmarshal(line, &m) != nil {
			return // it was killed, perhaps in the middle of a line
		}
		switch {
		case m.Visit != nil:
			h.add(*m.Visit)
		case m.Task != nil:
			h.tasks.note(p.setup.Worker, *m.Task)
		case m.Store != nil:
			reply := st.Serve(*m.Store)
			p.send(order{Reply: &reply})
		default:
			p.note = m.Note
			p.states <- m.State
		}
	}
}

// send gives an order. One to a worker that is gone is lost.
func (p *process) send(o order) {
	line, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.stdin.Write(append(line, '\n'))
}

// await returns when the worker reports the state.
func (p *process) await(tb testing.TB, state string) {
	tb.Helper()
	if got := p.next(tb, state); got != state {
		tb.Fatalf("worker %d: %q instead of %q; %s", p.setup.Worker, got, state, p.lastWords())
	}
}

// next returns the next state that the worker reports.
func (p *process) next(tb testing.TB, expected string) string {
	tb.Helper()
	select {
	case got := <-p.states:
		return got
	case <-time.After(patience):
		_ = dump(p.cmd.Process)
		tb.Fatalf("worker %d is not %s after %v; it does: %s", p.setup.Worker, expected, patience, p.lastWords())
		return ""
	}
}

// leave has the worker close everything and end, and returns what it has leaked.
func (p *process) leave(tb testing.TB) string {
	tb.Helper()
	p.send(order{Do: "leave"})
	p.await(tb, "left")
	note := p.note
	<-p.exited
	if p.failure != nil {
		note += fmt.Sprintf("the process ended with %v: %s", p.failure, p.lastWords())
	}
	return note
}

// lastWords is what the worker wrote about its own end, once it has ended.
func (p *process) lastWords() string {
	select {
	case <-p.exited:
		return p.stderr.String()
	case <-time.After(3 * time.Second):
		return ""
	}
}

// kill ends the process as a crash does, and returns when it is gone and everything
// that it wrote was read.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
}

// stop freezes the process, and returns when it rests.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	if err := suspend(p.cmd.Process); err != nil {
		tb.Fatal(err)
	}
	redistest.Await(tb, patience, "the worker to stop", func() bool { return isStopped(p.cmd.Process.Pid) })
}

func (p *process) cont(tb testing.TB) {
	tb.Helper()
	if err := resume(p.cmd.Process); err != nil {
		tb.Fatal(err)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// childVariable makes this program a child: it holds an order as JSON.
const childVariable = "LATCHKEY_BENCHMARK_CHILD"

// order is what a child process is told to do.
type order struct {
	Job     string // a key of jobs
	Library string
	Addr    string // of Redis
	Number  int    // of this child, from 0

	// For contend and work.
	Goroutines int
	Section    section
	Wants      wants

	// For hold.
	Locks   int
	Lease   time.Duration
	Measure time.Duration
	Dies    bool // by SIGKILL, once it has told its result
}

// jobs are what children do. A job calls ready when it is prepared, which
// returns when the parent says so, and gets a channel that is closed when it
// must end. What it returns goes to the parent as JSON.
var jobs = map[string]func(o order, lib library, a *arena, ready func(), end <-chan struct{}) (any, error){
	"contend":  contend,
	"hand off": handOff,
	"hold":     hold,
	"watch":    watch,
	"work":     work,
}

// runChild does what the variable says, and does not return, in a process that
// was started as a child.
func runChild() {
	text := os.Getenv(childVariable)
	if text == "" {
		return
	}
	if err := obey(text); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks: child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func obey(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	lib, err := findLibrary(o.Library)
	if err != nil {
		return err
	}
	shared := os.NewFile(3, "arena")
	a, err := mapArena(shared)
	if err != nil {
		return err
	}
	end := make(chan struct{})
	ready := func() {
		a.ready.Add(1)
		// One byte is the start, the end of input is the end: also when the
		// parent dies.
		_, _ = io.ReadFull(os.Stdin, make([]byte, 1))
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(end)
		}()
	}
	result, err := jobs[o.Job](o, lib, a, ready, end)
	if err != nil {
		return err
	}
	err = json.NewEncoder(os.Stdout).Encode(result)
	if err == nil && o.Dies {
		err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return err
}

// children are processes that work together in one arena.
type children struct {
	*arena
	file *os.File
	all  []*child
}

type child struct {
	order
	cmd    *exec.Cmd
	orders io.WriteCloser
	out    bytes.Buffer
}

// startChildren starts a process for each order and has them begin together.
func startChildren(orders []order) (*children, error) {
	a, file, err := shareArena()
	if err != nil {
		return nil, err
	}
	c := &children{arena: a, file: file}
	for _, o := range orders {
		if err = c.start(o); err != nil {
			break
		}
	}
	if err == nil {
		err = c.awaitReady()
	}
	for i := 0; i < len(c.all) && err == nil; i++ {
		_, err = c.all[i].orders.Write([]byte{'\n'})
	}
	if err != nil {
		return nil, errors.Join(err, c.kill())
	}
	return c, nil
}

func (c *children) start(o order) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &child{order: o, cmd: exec.Command(self)}
	// With the race detector a process would rest for a second before it ends.
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.ExtraFiles = []*os.File{c.file}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, os.Stderr
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err = p.cmd.Start(); err == nil {
		c.all = append(c.all, p)
	}
	return err
}

// awaitReady returns when all are prepared.
func (c *children) awaitReady() error {
	deadline := time.Now().Add(patience)
	for int(c.ready.Load()) < len(c.all) {
		if time.Now().After(deadline) {
			return fmt.Errorf("of %d processes %d were ready in %v", len(c.all), c.ready.Load(), patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// patience is how long a process may take to start or to end.
const patience = time.Minute

// finish ends all and reads what each of them found into a result.
func finish[T any](c *children) ([]T, error) {
	c.phase.Store(over)
	for _, p := range c.all {
		_ = p.orders.Close()
	}
	timer := time.AfterFunc(patience, func() {
		for _, p := range c.all {
			_ = p.cmd.Process.Kill()
		}
	})
	defer timer.Stop()
	results := make([]T, len(c.all))
	var errs []error
	for i, p := range c.all {
		err := p.cmd.Wait()
		if err == nil || p.Dies && p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			err = json.Unmarshal(p.out.Bytes(), &results[i])
		}
		errs = append(errs, err)
	}
	errs = append(errs, c.file.Close())
	return results, errors.Join(errs...)
}

// kill ends what startChildren has started in vain.
func (c *children) kill() error {
	for _, p := range c.all {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
	c.unmap()
	return c.file.Close()
}

// section is what a child does while it holds the lock.
type section struct {
	Sleep time.Duration // as a handler that waits for a database
	Spin  time.Duration // as a handler that computes
}

func (s section) run() {
	if s.Sleep > 0 {
		time.Sleep(s.Sleep)
	}
	for start := time.Now(); time.Since(start) < s.Spin; {
		runtime.Gosched()
	}
}

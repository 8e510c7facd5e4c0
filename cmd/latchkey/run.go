package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// killAfter is how long a command may take to end when its lock was lost.
var killAfter = 5 * time.Second

// run runs a command while it holds a lock.
func (p *program) run(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey run")
	var opts []core.Option
	option := func(name, usage string, option func(time.Duration) core.Option) {
		f.Func(name, usage, func(s string) error {
			d, err := time.ParseDuration(s)
			opts = append(opts, option(d))
			return err
		})
	}
	option("wait", "longest `time` to wait for the lock, 0 for none; without it there is no end", core.Wait)
	option("lease", "`time` that the lock outlives latchkey and its machine; by default 30s", core.Lease)
	option("keep", "dedup window: the `time` that the lock stays taken from when it was taken, if the command ends with 0", core.KeepFor)
	busy := f.Int("E", exitBusy, "exit `code` when the lock is busy")
	args, words, err := split(args)
	if err != nil {
		return 0, err
	}
	if err := p.parse(f, args, 1, 1); err != nil {
		return 0, err
	}
	key := f.Arg(0)
	switch {
	case *busy < 0 || *busy > 255:
		return 0, fmt.Errorf("%w: -E %d: exit codes are from 0 to 255", errUsage, *busy)
	case len(words) == 0:
		return 0, fmt.Errorf("%w: the command to run is missing; it comes after KEY --", errUsage)
	}
	cmd := exec.Command(words[0], words[1:]...)
	if cmd.Err != nil {
		return 0, cmd.Err
	}
	locker, disconnect, err := p.connect(ctx, append(opts, adapter.MayLast())...)
	if err != nil {
		return 0, err
	}
	defer disconnect()

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, heeded(forwarded)...)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock, ended, err := acquire(ctx, cancel, locker, key, signals)
	var taken *core.BusyError
	switch {
	case ended != nil:
		return exitSignal + int(ended.(syscall.Signal)), nil
	case errors.As(err, &taken) && *busy == 0:
		return 0, nil // say nothing: cron would send a mail
	case errors.As(err, &taken):
		return *busy, err
	case err != nil:
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, p.stderr
	cmd.Env = append(environment(), "LATCHKEY_KEY="+key, "LATCHKEY_TOKEN="+strconv.FormatInt(lock.Token(), 10))
	exit, err := supervise(cmd, lock.Context().Done(), signals)
	release := lock.Abort
	if exit == 0 && err == nil {
		release = lock.Unlock
	}
	released := release(ctx)
	switch {
	case errors.Is(released, core.ErrLost):
		return exitLost, fmt.Errorf("the lock was lost while the command ran: %w", released)
	case err != nil:
		return 0, err
	}
	return exit, nil // a release that failed is logged, and repeated
}

// split splits the arguments of run at the first "--", before which KEY stands. A key comes from
// elsewhere, and so may be empty or look like a flag: then no word of the command is taken for it.
func split(args []string) (flags, command []string, err error) {
	at := slices.Index(args, "--")
	switch {
	case at < 0:
		return args, nil, nil
	case at == 0:
		return nil, nil, fmt.Errorf("%w: KEY is missing before --", errUsage)
	case strings.HasPrefix(args[at-1], "-"):
		return nil, nil, fmt.Errorf("%w: KEY is missing: directly before -- is %q, and a KEY cannot begin with - there", errUsage, args[at-1])
	}
	return args[:at], args[at+1:], nil
}

// environment is that of latchkey without the address of Redis, in which there may be a password.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LATCHKEY_REDIS=") })
}

// heeded are those of some signals that latchkey was not started to ignore, as by nohup or in
// the background of a script: to ask for one ends that, for the command as well.
func heeded(signals []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(signals), signal.Ignored)
}

// acquire waits for the lock, or for a signal that ends latchkey. The lock lasts until
// cancel is called, or longer.
func acquire(ctx context.Context, cancel func(), locker *core.Locker, key string, signals <-chan os.Signal) (lock *core.Lock, ended os.Signal, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		lock, err = locker.Lock(ctx, key)
	}()
	for {
		select {
		case <-done:
			return lock, nil, err
		case s := <-signals:
			if !slices.Contains(ending, s) {
				continue
			}
			cancel()
			<-done
			if lock != nil {
				_ = lock.Abort(ctx) // what is not confirmed is repeated
			}
			return nil, s, nil
		}
	}
}

// supervise runs a command: it gets the signals, and is ended when the lock is lost. What it has started is waited for, too.
func supervise(cmd *exec.Cmd, lost <-chan struct{}, signals <-chan os.Signal) (exit int, err error) {
	g, err := startGroup(cmd)
	if err != nil {
		return 0, err
	}
	say := func(format string, args ...any) { fmt.Fprintf(cmd.Stderr, "latchkey: "+format+"\n", args...) }
	outlives := func(err error) {
		if errors.Is(err, os.ErrPermission) {
			say("THE LOCK IS LOST, but process %d, or what it has started, GOES ON: another user has it, so it cannot be ended from here", cmd.Process.Pid)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stops := g.stops()
	var empty <-chan struct{} // nil while the command runs
	var late, enough <-chan time.Time
	isLost, isKilled := false, false
	for {
		select {
		case err := <-ended:
			if exit, err = g.exit(err); err != nil {
				return 0, err
			}
			stops, empty = nil, g.empty
			if !isLost {
				late = time.After(time.Second)
			} else if isKilled {
				enough = time.After(time.Second)
			}
		case <-empty:
			return exit, nil
		case <-late:
			say("the command has ended, and what it has started GOES ON: the lock stays held until that ends")
		case <-stops:
			if g.isStopped() {
				say("process %d, the command, is STOPPED: the lock stays held until it goes on, and ends", cmd.Process.Pid)
			}
		case s := <-signals:
			if errors.Is(g.forward(s), os.ErrPermission) {
				say("NOT SENT to process %d, which another user has: the signal %v. The lock stays held until the process ends", cmd.Process.Pid, s)
			}
			if empty != nil && enough == nil && slices.Contains(ending, s) {
				enough = time.After(killAfter)
			}
		case <-lost:
			lost, isLost = nil, true
			outlives(g.end())
			enough = time.After(killAfter)
		case <-enough:
			switch enough = nil; {
			case isLost && !isKilled:
				isKilled = true
				outlives(g.kill())
				if empty != nil {
					enough = time.After(time.Second)
				}
			case empty != nil:
				say("what the command has started GOES ON WITHOUT THE LOCK: it cannot be ended from here")
				return exit, nil
			}
		}
	}
}

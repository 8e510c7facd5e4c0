package core

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// errNoAnswer is the cause when Redis took longer than the timeout.
var errNoAnswer = errors.New("no answer in time")

// unsentError is a failure of a command that surely never left this process.
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }
func (e *unsentError) Unwrap() error { return e.cause }

// node is one Redis: a server, a cluster, a ring. A Locker has one, a quorum
// several.
type node struct {
	client      redis.UniversalClient
	tasks       *tasks
	outbox      *outbox
	replication replication
	reload      atomic.Int64 // when the cluster's state was last asked for, Unix ns
}

func newNode(client redis.UniversalClient, t *tasks, r replication) *node {
	n := &node{client: client, tasks: t, replication: r}
	n.outbox = &outbox{node: n, tasks: t}
	return n
}

// failed hears how every exchange ended.
func (n *node) failed(err error) {
	if err != nil && !isRefusal(err) {
		n.lookAgain()
	}
}

// lookAgain has a cluster client look for the master of a shard that does not
// answer, at most once a second. By itself it looks every minute only, and finds
// out about a failover long after it has happened. It does not block.
func (n *node) lookAgain() {
	cluster, ok := n.client.(*redis.ClusterClient)
	if !ok {
		return
	}
	now := time.Now().UnixNano()
	if last := n.reload.Load(); now-last > int64(time.Second) && n.reload.CompareAndSwap(last, now) {
		cluster.ReloadState(context.Background()) // in the background, by go-redis
	}
}

// exchange runs a script and returns its reply. It returns as soon as ctx ends
// or the timeout is over, although go-redis does not interrupt a command on its
// way. undo is called, perhaps later, when the script may have run or may still
// run without anybody hearing of it; nil if that does no harm.
func (n *node) exchange(ctx context.Context, c *call, timeout time.Duration, undo func()) ([]any, error) {
	work, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), timeout, errNoAnswer)
	f := &flight{undo: undo}
	answered := make(chan answer, 1)
	n.tasks.start(func() {
		defer cancel()
		values, err := n.run(work, c, f)
		n.failed(err)
		answered <- answer{values, err}
	})
	var a answer
	select {
	case a = <-answered:
	case <-work.Done():
		select {
		case a = <-answered:
		default:
			a.err = context.Cause(work)
			f.abandon()
			return nil, a.err
		}
	case <-ctx.Done():
		cancel() // a command that still waits for a connection is not sent
		f.abandon()
		return nil, ended(ctx)
	}
	switch {
	case a.err == nil:
		return a.values, nil
	case errors.Is(a.err, work.Err()):
		a.err = fmt.Errorf("%w: %v", errNoAnswer, a.err)
	case isRefusal(a.err):
		return nil, a.err // nothing was done
	}
	if !f.abandon() {
		return nil, &unsentError{a.err}
	}
	return nil, a.err
}

// run sends a script by its digest, and whole where Redis has not seen it.
func (n *node) run(ctx context.Context, c *call, f *flight) ([]any, error) {
	if n.replication.wants(c) {
		return n.runReplicated(ctx, c, f)
	}
	cmd := once{redis.NewCmd(ctx, c.command(false)...), f}
	err := n.client.Process(ctx, cmd)
	if isUnknownScript(err) {
		cmd = once{redis.NewCmd(ctx, c.command(true)...), f}
		err = n.client.Process(ctx, cmd)
	}
	if err != nil {
		return nil, err
	}
	a := read(c, cmd.Cmd)
	return a.values, a.err
}

// answer is what came of a call.
type answer struct {
	values []any
	err    error
}

func read(c *call, cmd *redis.Cmd) answer {
	values, err := cmd.Slice()
	if err == nil {
		err = c.script.check(values)
	}
	return answer{values, err}
}

func isUnknownScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// isMigrating says that Redis has done nothing because the lock's slot is just
// moving to another node: it will work in a moment.
func isMigrating(err error) bool { return redis.HasErrorPrefix(err, "TRYAGAIN") }

// isRefusal says that Redis answered with an error and did nothing.
func isRefusal(err error) bool {
	var answer redis.Error
	var done *shortfallError
	return errors.As(err, &answer) && !errors.As(err, &done)
}

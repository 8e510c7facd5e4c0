package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	prefix      string // of all keys
	tasks       *tasks
	outbox      *outbox
	replication replication
	lanes       sync.Map  // by client
	timers      sync.Pool // of exchanges that have ended
	timeout     time.Duration
	topology    topology
	silence     silence
	reload      atomic.Int64 // when the cluster's state was last asked for, Unix ns
}

func newNode(client redis.UniversalClient, l *Locker, r replication) *node {
	n := &node{client: client, prefix: l.prefix, timeout: l.timeout, tasks: &l.tasks, replication: r}
	n.outbox = &outbox{node: n, tasks: &l.tasks}
	return n
}

// failed hears how every exchange ended.
func (n *node) failed(err error) {
	n.silence.end(err)
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

// attempt sends a call and waits for the answer. f is the flight of an earlier copy, or
// nil.
func (n *node) attempt(ctx context.Context, c *call, timeout time.Duration, undo func(*node), f *flight) (*flight, answer) {
	end := time.Now().Add(timeout)
	n.silence.ask(n.timeout)
	if err, over := n.await(ctx, timeout); err != nil {
		if f == nil {
			f = &flight{node: n, undo: undo}
		}
		return f, answer{err: err, over: over}
	}
	lane := n.laneOf(c)
	if lane != nil && lane.bounded && ctx.Done() == nil && lane.enter(nil) {
		defer lane.leave()
		if f == nil {
			f = &flight{node: n, undo: undo}
		}
		return f, lane.run(ctx, c, end, f)
	}

	e := newErrand(ctx, n, c, end, undo, f)
	if lane == nil || lane.enter(&e.delivery) {
		e.lane = lane
		n.tasks.begin(e)
	}
	timer := n.timer(e.delivery.timeout)
	defer n.timers.Put(timer)
	defer timer.Stop()
	select {
	case <-e.answered:
		e.end(context.Canceled)
		return e.flight, e.answer.by(e.late())
	case <-timer.C:
		e.end(context.DeadlineExceeded)
	case <-ctx.Done():
		e.end(context.Canceled)
		return e.flight, answer{err: ended(ctx), over: true}
	}
	select {
	case <-e.answered:
		return e.flight, e.answer.by(context.DeadlineExceeded)
	default:
		return e.flight, answer{err: errNoAnswer, over: true}
	}
}

// timer returns one that fires after d.
func (n *node) timer(d time.Duration) *time.Timer {
	if timer, ok := n.timers.Get().(*time.Timer); ok {
		timer.Reset(d)
		return timer
	}
	return time.NewTimer(d)
}

// laneOf returns the lane to the server that has the call's key; nil for a call
// that goes another way.
func (n *node) laneOf(c *call) *lane {
	if n.replication.wants(c) {
		return nil
	}
	return n.laneTo(n.serving(c.lock))
}

func (n *node) laneTo(client redis.UniversalClient) *lane {
	if l, ok := n.lanes.Load(client); ok {
		return l.(*lane)
	}
	l, _ := n.lanes.LoadOrStore(client, newLane(n, client))
	return l.(*lane)
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
	over   bool // nobody waited any longer
}

// by gives an error its kind. ended is why the call's context has ended, nil if it has
// not.
func (a answer) by(ended error) answer {
	if ended != nil && errors.Is(a.err, ended) {
		a.err = fmt.Errorf("%w: %v", errNoAnswer, a.err)
	}
	return a
}

func read(c *call, cmd *redis.Cmd) answer {
	reply, err := cmd.Result()
	if err != nil {
		return answer{err: err}
	}
	values, err := c.values(reply)
	return answer{values: values, err: err}
}

func isUnknownScript(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// isMigrating says that Redis has done nothing because the lock's slot is just
// moving to another node: it will work in a moment.
func isMigrating(err error) bool { return err != nil && redis.HasErrorPrefix(err, "TRYAGAIN") }

// isRefusal says that Redis answered with an error and did nothing, or that the client
// did, which is closed.
func isRefusal(err error) bool {
	var answer redis.Error
	var done *shortfallError
	return isClosed(err) || errors.As(err, &answer) && !errors.As(err, &done)
}

// isClosed says that the client is closed: it will never work again.
func isClosed(err error) bool { return errors.Is(err, redis.ErrClosed) }

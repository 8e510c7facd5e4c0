package faults

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// deadlines learns, from what the client sends and Redis answers, up to which time
// Redis keeps the lock for an owner. It owes nothing to what the Locker makes of the
// same answers.
type deadlines struct {
	acquire, renew []string // digests of the scripts
	members        int
	replicas       int // that must have it before it counts

	mu        sync.Mutex
	known     map[string][]int64 // by the digest of an owner, as messages have it, for each member
	followers map[string]*record // likewise
}

func newDeadlines(members, replicas int) (*deadlines, error) {
	d := &deadlines{members: members, replicas: replicas, known: map[string][]int64{}, followers: map[string]*record{}}
	for script, digests := range map[string]*[]string{"acquire": &d.acquire, "renew": &d.renew} {
		more, err := redistest.Digests(script)
		if err != nil {
			return nil, err
		}
		*digests = append(*digests, more...)
	}
	return d, nil
}

// follow returns the deadline of an owner, 0 when Redis has confirmed nothing, and
// has further ones reported. A lock that is passed on keeps its owner: then the last one
// who follows hears of them.
func (d *deadlines) follow(owner string, r *record) int64 {
	digest := redistest.Digest(owner)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.followers[digest] = r
	return d.of(digest)
}

func (d *deadlines) leave(owner string, r *record) {
	digest := redistest.Digest(owner)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.followers[digest] == r {
		delete(d.followers, digest)
	}
}

// until is the time up to which Redis keeps a lock for an owner, as far as it has confirmed that.
func (d *deadlines) until(owner string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of(redistest.Digest(owner))
}

// of is the time up to which a majority of the members keeps the lock. d.mu is held.
func (d *deadlines) of(digest string) int64 {
	times := slices.Clone(d.known[digest])
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// learn takes the reply to a command that was sent at a time, or later.
func (d *deadlines) learn(member int, sent int64, sending redis.Cmder) {
	cmd := plain(sending)
	if cmd == nil {
		return
	}
	for owner, lease := range d.outcome(cmd) {
		d.confirm(member, redistest.Digest(owner), sent+int64(lease))
	}
}

// confirm notes up to when a member keeps the lock for an owner with that digest.
func (d *deadlines) confirm(member int, digest string, until int64) {
	d.mu.Lock()
	times := d.known[digest]
	if times == nil {
		times = make([]int64, d.members)
		d.known[digest] = times
	}
	times[member] = max(times[member], until)
	follower, deadline := d.followers[digest], d.of(digest)
	d.mu.Unlock()
	if follower != nil {
		follower.extended(deadline)
	}
}

// outcome returns the owners for which Redis has confirmed a lease, and for how long.
func (d *deadlines) outcome(cmd *redis.Cmd) map[string]time.Duration {
	args := cmd.Args()
	if len(args) < 3 {
		return nil
	}
	sha := fmt.Sprint(args[1])
	if args[0] == "eval" {
		sha = redistest.Digest(sha)
	}
	confirmed := map[string]time.Duration{}
	keys := int(integer(args[2]))
	args = args[3+keys:]
	switch {
	case slices.Contains(d.acquire, sha):
		calls := keys / 3
		replies, isList := cmd.Val().([]any)
		if calls == 1 || !isList { // what is no list is the reply to each
			replies = slices.Repeat([]any{cmd.Val()}, calls)
		}
		if len(replies) != calls {
			return nil // the reply to another command
		}
		for i, reply := range replies {
			call := args[i*len(args)/calls:] // owner, lease, …
			lease := int64(30_000)
			if len(args)/calls > 1 {
				lease = integer(call[1])
			}
			values, _ := reply.([]any)
			switch token, isText := reply.(string); {
			case isText && token[0] != '0': // it ends with a hold
				confirmed[fmt.Sprint(call[0])] = time.Duration(max(lease, -lease)) * time.Millisecond
			case len(values) == 7 && integer(values[0]) == 1:
				confirmed[fmt.Sprint(call[0])] = time.Duration(integer(values[2])) * time.Millisecond
			}
		}
	case slices.Contains(d.renew, sha):
		replies := []any{cmd.Val()}
		if merged := len(args) == 3*keys; keys > 1 && merged {
			replies, _ = cmd.Val().([]any)
			replies = replies[:min(len(replies), keys)] // it may be to another command
		}
		for i, reply := range replies { // of each: owner, token, lease
			if said := fmt.Sprint(reply); strings.HasPrefix(said, "[10 ") || strings.HasPrefix(said, "10") { // of one, of several
				confirmed[fmt.Sprint(args[3*i])] = time.Duration(integer(args[3*i+2])) * time.Millisecond
			}
		}
	}
	return confirmed
}

// integer reads a number, however it was written.
func integer(v any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	return n
}

// plain is the command inside of core's wrapper. The wrapper takes a call of its
// Args for the moment at which the command leaves, so that a hook must not ask it.
func plain(c redis.Cmder) *redis.Cmd {
	if v := reflect.Indirect(reflect.ValueOf(c)); v.Kind() == reflect.Struct {
		if f := v.FieldByName("Cmd"); f.IsValid() && f.CanAddr() {
			cmd, _ := f.Addr().Interface().(*redis.Cmd)
			return cmd
		}
	}
	return nil
}

// acknowledged says whether enough replicas have what a pipeline has written: core
// sends WAIT with it.
func (d *deadlines) acknowledged(cmds []redis.Cmder) bool {
	if d.replicas == 0 {
		return true
	}
	for _, c := range cmds {
		if cmd, ok := c.(*redis.Cmd); ok && cmd.Name() == "wait" {
			have, err := cmd.Int()
			return err == nil && have >= d.replicas
		}
	}
	return false
}

// learner is the hook of a client of one member.
type learner struct {
	deadlines *deadlines
	member    int
}

func (l learner) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &grantReader{Conn: c, learner: l}, nil
	}
}

func (l learner) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		sent := now()
		err := next(ctx, cmd)
		if err == nil && l.deadlines.replicas == 0 { // cmd.Err may still be a redirection by another node
			l.deadlines.learn(l.member, sent, cmd)
		}
		return err
	}
}

func (l learner) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := now()
		err := next(ctx, cmds)
		safe := l.deadlines.acknowledged(cmds)
		for _, cmd := range cmds {
			if safe && cmd.Err() == nil {
				l.deadlines.learn(l.member, sent, cmd)
			}
		}
		return err
	}
}

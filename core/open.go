package core

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/byurl"
	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Open returns a Locker on the Redis at a URL, with a client of its own, once Redis has answered.
// [Locker.Close] closes the client, too. It takes the options of [New].
//
// The URL is one of go-redis, and its parameters are those of the function that parses it:
//
//	redis://user:password@host:6379/0           a single server: redis.ParseURL
//	unix://user:password@/path/to/redis.sock    the same, by a socket
//	redis://user:password@host:6379?addr=host2:6379&addr=host3:6379
//	                                            a cluster, for it has an addr: redis.ParseClusterURL
//	redis://host:26379?addr=host2:26379&master_name=mymaster&username=user&password=password
//	                                            Sentinels, for it has a master_name: redis.ParseFailoverURL
//
// rediss instead of redis means TLS. What is before the @ of a Sentinel's URL is for the Sentinels.
// The client keeps deadlines (ContextTimeoutEnabled); unless the URL says otherwise a dial takes
// [Timeout] at most, and a command dials once. For anything else, such as certificates of your own,
// give a client to [New].
//
// It blocks as [Locker.Ping] does; when Ping fails, also until what was begun is over: for four
// times Timeout at most, or about Timeout after the end of ctx. It fails when the URL or an option
// is bad, or as Ping does. Nothing stays open then, apart from what Close leaves. The text of the
// error says what to do, and is for the log: it has the address, but neither user nor password.
// The log warns of a Redis whose maxmemory-policy lets it delete locks; to ask takes Timeout at most.
func Open(ctx context.Context, url string, opts ...Option) (*Locker, error) {
	l, err := newLocker(opts, defaultTimeout, lease.RenewalsPerLease)
	if err != nil {
		return nil, err
	}
	at, client, err := byurl.ClientOf(url, l.defaults.timeout)
	if err != nil {
		return nil, fmt.Errorf("core: Open: %w", err)
	}
	l.own = client
	if l, err = l.start(client); err != nil {
		_ = client.Close()
		return nil, err
	}
	if err := l.Ping(ctx); err != nil {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = l.Close(over)
		what := err.Error()
		text := fmt.Sprintf("core: cannot take locks at %s: %s%s", at, byurl.Advice(what), strings.TrimPrefix(what, "core: "))
		return nil, &detailedError{text, err}
	}
	if !l.defaults.Looks {
		l.warnOfEviction(ctx, client)
	}
	return l, nil
}

var policy = regexp.MustCompile(`maxmemory_policy:([\w-]+)`)

// warnOfEviction warns of a Redis that deletes locks when it is full. Where Redis does not tell, it is silent.
func (l *Locker) warnOfEviction(ctx context.Context, client redis.UniversalClient) {
	ctx, cancel := context.WithTimeout(ctx, l.acquirer.Timeout)
	defer cancel()
	info, _ := client.Info(ctx, "memory").Result()
	if found := policy.FindStringSubmatch(info); found != nil && found[1] != "noeviction" {
		l.acquirer.Warn(ctx, "Redis deletes locks when its memory is full: set maxmemory-policy noeviction", "maxmemory_policy", found[1])
	}
}

// pingLease is for how long a lock may stay that Ping has taken and could not release.
const pingLease = 5 * time.Second

// Ping reports whether locks can be taken: for the start of a program, and for its readiness probe.
// It takes a lock of its own, under the Locker's prefix, and releases it, so it finds out what a
// first request would, such as a missing permission; but not what only those need that wait, or
// use another form or option. Then it looks whether a client that is not a
// cluster's has reached a node of one, which has only a part of the keys. In a cluster it asks the
// master of the first hash slot, in a quorum all members.
//
// It blocks for three requests at most, each for [Timeout] at most, or until ctx ends, and fails
// with [ErrUnavailable] or [ErrClosed], or with [ErrNotAcquired] and the context's error. The text
// has the details that other errors leave to [Detail]: it is not for clients. Observers do not hear
// of it. It is safe for concurrent use.
func (l *Locker) Ping(ctx context.Context) error {
	var s settings // none of New's, which are for other locks
	s.Wait, s.Lease = new(time.Duration), max(pingLease, 3*l.acquirer.Timeout)
	// A key of its own: one that an earlier Ping could not release would be busy, which says
	// nothing about whether Redis accepts writes.
	key := store.InFirstSlot(l.defaults.prefix, "latchkey:ping:"+l.acquirer.Store.NewHold()+":")
	var h *lease.Handle
	var err error
	if l.defaults.Looks {
		_, err = l.Inspect(ctx, key)
	} else if h, err = l.acquirer.Lock(ctx, key, &s.Settings); err == nil {
		err = lockOf(h).Unlock(ctx)
	}
	if err == nil || conn.IsMoved(err) {
		ctx, cancel := context.WithTimeout(ctx, l.acquirer.Timeout)
		defer cancel()
		if divided := l.acquirer.Store.FindDivided(ctx, l.defaults.prefix); divided != nil {
			err = &LockError{kind: ErrUnavailable, text: "redis unavailable", cause: divided}
		}
	}
	if err != nil {
		return &detailedError{Detail(err), err}
	}
	return nil
}

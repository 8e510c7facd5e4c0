package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
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
func Open(ctx context.Context, url string, opts ...Option) (*Locker, error) {
	l, err := newLocker(opts, defaultTimeout, renewalsPerLease)
	if err != nil {
		return nil, err
	}
	at, client, err := clientOf(url, l.timeout)
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
		return nil, &detailedError{fmt.Sprintf("core: cannot take locks at %s: %s%s", at, advice(what), strings.TrimPrefix(what, "core: ")), err}
	}
	return l, nil
}

// pingLease is for how long a lock may stay that Ping has taken and could not release.
const pingLease = 5 * time.Second

// Ping reports whether locks can be taken: for the start of a program, and for its readiness probe.
// It takes a lock of its own, under the Locker's prefix, and releases it, so it finds out what a
// first request would, such as a missing permission. Then it looks whether a client that is not a
// cluster's has reached a node of one, which has only a part of the keys. In a cluster it asks the
// master of the first hash slot, in a quorum all members.
//
// It blocks for three requests at most, each for [Timeout] at most, or until ctx ends, and fails
// with [ErrUnavailable] or [ErrClosed], or with [ErrNotAcquired] and the context's error. The text
// has the details that other errors leave to [Detail]: it is not for clients. Observers do not hear
// of it. It is safe for concurrent use.
func (l *Locker) Ping(ctx context.Context) error {
	var s settings // none of New's, which are for other locks
	s.Wait, s.Lease = new(time.Duration), max(pingLease, 3*l.timeout)
	// A key of its own: one that an earlier Ping could not release would be busy, which says
	// nothing about whether Redis accepts writes.
	key := store.InFirstSlot(l.defaults.prefix, "latchkey:ping:"+l.store.NewHold()+":")
	var k *Lock
	var err error
	if l.defaults.Looks {
		_, err = l.Inspect(ctx, key)
	} else if k, err = l.enterOrLock(ctx, key, &s); err == nil {
		err = k.Unlock(ctx)
	}
	if err == nil || conn.IsMoved(err) {
		ctx, cancel := context.WithTimeout(ctx, l.timeout)
		defer cancel()
		if divided := l.store.FindDivided(ctx, l.defaults.prefix); divided != nil {
			err = &LockError{kind: ErrUnavailable, text: "redis unavailable", cause: divided}
		}
	}
	if err != nil {
		return &detailedError{Detail(err), err}
	}
	return nil
}

// clientOf returns a client, which has not connected yet, and what of the URL may be shown.
func clientOf(raw string, timeout time.Duration) (at string, client redis.UniversalClient, err error) {
	u, err := url.Parse(raw)
	if err == nil && u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" {
		return "", nil, errors.New("the URL must begin with redis://, rediss:// or unix://, as redis://localhost:6379 does")
	}
	if err != nil || isPasswordInside(u) { // what says more would show it
		return "", nil, errors.New("the URL cannot be read; user and password are given once, before the first host; " +
			"in them write / as %2F, # as %23, ? as %3F, @ as %40, : as %3A and % as %25")
	}
	at = u.Scheme + "://" + u.Host + u.Path
	bound := func(keepsDeadlines *bool, dial *time.Duration, dials *int) {
		*keepsDeadlines, *dial, *dials = true, cmp.Or(*dial, timeout), cmp.Or(*dials, 1)
	}
	switch query := u.Query(); {
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(raw)
		if err == nil && (o.RouteByLatency || o.RouteRandomly || o.ReplicaOnly) {
			err = errors.New("locks are on the master: leave out route_by_latency, route_randomly and replica_only")
		}
		if err != nil {
			return "", nil, err
		}
		bound(&o.ContextTimeoutEnabled, &o.DialTimeout, &o.DialerRetries)
		return at, redis.NewFailoverClient(o), nil
	case query.Has("addr"):
		o, err := redis.ParseClusterURL(raw)
		if err != nil {
			return "", nil, err
		}
		bound(&o.ContextTimeoutEnabled, &o.DialTimeout, &o.DialerRetries)
		return at, redis.NewClusterClient(o), nil
	default:
		o, err := redis.ParseURL(raw)
		if err != nil {
			return "", nil, err
		}
		bound(&o.ContextTimeoutEnabled, &o.DialTimeout, &o.DialerRetries)
		return at, redis.NewClient(o), nil
	}
}

// isPasswordInside finds a password with characters that end it too early, and one at
// another host than the first.
func isPasswordInside(u *url.URL) bool {
	inside := u.Scheme != "unix" && strings.Contains(u.Path, "@") || strings.Contains(u.Fragment, "@")
	for name, values := range u.Query() {
		inside = inside || strings.Contains(name, "@") || name == "addr" && strings.Contains(strings.Join(values, ""), "@")
	}
	return inside
}

const lacksRight = "the Redis user lacks a right: docs/faq.md lists those it needs"

// advices are by what the text of an error of Redis, go-redis or the network contains.
var advices = []struct{ says, do string }{
	{"MOVED ", "this is one node of a cluster: add ?addr=host:port of another one to the URL"},
	{"cluster support disabled", "this Redis is in no cluster: leave addr out of the URL"},
	{"unknown command 'evalsha'", "is this a Sentinel? Add ?master_name=… to the URL"},
	{"unknown command 'sentinel'", "this is no Sentinel: leave master_name out of the URL, or give the port of the Sentinels, mostly 26379"},
	{"are unreachable: redis: nil", "the Sentinels know no master of that name: see master_name in the URL"},
	{"NOAUTH", "put user and password into the URL: redis://user:password@host:6379"},
	{"WRONGPASS", "see user and password in the URL"},
	{"NOPERM", lacksRight},
	{"ACL failure in script", lacksRight},  // inside of one, since 7.2
	{"can't run this command", lacksRight}, // in 7.0
	{"READONLY", "this is a replica: take the address of the master, or those of the Sentinels, with master_name"},
	{"DB index is out of range", "see the number at the end of the URL: there is no such database, and in a cluster only 0"},
	{"x509", "the server's certificate is for another host than that of the URL, or its CA is not known here; " +
		"for a CA of your own give New a client with TLSConfig"},
	{"connection refused", "start Redis there, or correct host and port"},
	{"no such host", "correct the host"},
	{"no such file or directory", "start Redis with this path as its unixsocket, or correct the path"},
	{"no answer in time", "is it the right host and port, does a firewall let it through, " +
		"and does the server speak TLS (rediss://) or not (redis://)?"},
	{"EOF", "is it Redis that listens there, and does it speak TLS (rediss://) or not (redis://)?"},
}

func advice(text string) string {
	text = strings.ReplaceAll(text, "`", "'") // before Redis 7
	for _, a := range advices {
		if strings.Contains(text, a.says) {
			return a.do + ": "
		}
	}
	return ""
}

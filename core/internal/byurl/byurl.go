// Package byurl makes Redis clients of URLs, and knows what to do when one cannot be reached. It shows no password.
package byurl

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ClientOf returns a client, which has not connected yet, and what of the URL may be shown.
func ClientOf(raw string, timeout time.Duration) (at string, client redis.UniversalClient, err error) {
	u, err := url.Parse(raw)
	if err == nil && u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" {
		return "", nil, errors.New("the URL must begin with redis://, rediss:// or unix://, as redis://localhost:6379 does")
	}
	if err != nil || isPasswordInside(u) { // what says more would show it
		return "", nil, errors.New("the URL cannot be read; user and password are given once, before the first host; " +
			"in them write / as %2F, # as %23, ? as %3F, @ as %40, : as %3A and % as %25")
	}
	at = u.Scheme + "://" + u.Host + u.Path
	defer func() {
		if err != nil { // a password may be typed anywhere: what is wrong is said, not what stands there
			err = errors.New(wrongInURL.FindString(err.Error()))
		}
	}()
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

// wrongInURL is what of an error of go-redis, or of ours, is not from the URL: its first two parts, and the name of an option.
var wrongInURL = regexp.MustCompile(`^[^:]*(: unexpected option: [a-z_]+$|: [^:]*)?`)

// isPasswordInside finds a password with characters that end it too early, or that a colon ends, and one at
// another host than the first.
func isPasswordInside(u *url.URL) bool {
	inside := hasPassword(u.Host) || u.Scheme != "unix" && strings.Contains(u.Path, "@") || strings.Contains(u.Fragment, "@")
	for name, values := range u.Query() {
		inside = inside || strings.Contains(name, "@") || name == "addr" && slices.ContainsFunc(values, hasPassword)
	}
	return inside
}

// hasPassword says that an address is more than a host, which has colons in brackets only, and a port.
func hasPassword(address string) bool {
	return strings.Contains(address, "@") || strings.Count(address[strings.LastIndexByte(address, ']')+1:], ":") > 1
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
	{"replicas have the lock", "fewer replicas are in sync than Replicas asks for: see INFO replication; " +
		"one that has just started takes seconds"},
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

// Advice says what to do about an error with that text, before a colon; empty: nobody knows.
func Advice(text string) string {
	text = strings.ReplaceAll(text, "`", "'") // before Redis 7
	for _, a := range advices {
		if strings.Contains(text, a.says) {
			return a.do + ": "
		}
	}
	return ""
}

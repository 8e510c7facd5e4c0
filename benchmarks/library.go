package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// library is one contestant.
type library struct {
	name string
	// sends names the commands that its clients send beside scripts, pub/sub and
	// what belongs to a connection. See traffic.
	sends []string
	open  func(addr string, s settings) (locker, error)
}

// settings are what a row asks of a library.
type settings struct {
	// lease, unless 0, is how long a lock lasts without renewal, and asks for one
	// every third of it. 0 is the library's default, or what its README uses.
	lease time.Duration
	// contextTimeout has clients of go-redis end a command with the deadline of its
	// context, which they do not by themselves. That of core.Open always does.
	contextTimeout bool
}

// client returns one of go-redis.
func (s settings) client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: s.contextTimeout})
}

// locker takes locks as a program that uses the library would. One serves a
// whole process.
type locker interface {
	// lock waits until it has the lock.
	lock(ctx context.Context, key string) (held, error)
	// redisKey is the name of the lock in Redis.
	redisKey(key string) string
	close() error
}

// held is a lock that was taken. It is made of one pointer, so that it costs no
// allocation that the library does not make.
type held interface {
	unlock() error
	// lost says that the library has noticed, and told, that it lost the lock.
	lost() bool
}

// pollEvery is how often a library tries again that has no other way to wait.
const pollEvery = 10 * time.Millisecond

var libraries = []library{floorLibrary, latchkeyLibrary, plainLibrary, redislockLibrary, redsyncLibrary, rueidislockLibrary,
	asynqRateLibrary, redissonLibrary}

// The names that rows and bars refer to.
const (
	floorName       = "floor"
	latchkeyName    = "latchkey"
	plainName       = "latchkey-plain" // with a client as redis.NewClient makes it
	redislockName   = "redislock"
	redsyncName     = "redsync"
	rueidislockName = "rueidislock"
	asynqRateName   = "asynq-rate"
	redissonName    = "redisson-scripts"
	bareName        = "bare handler"        // of requests and jobs: no lock at all
	backgroundName  = "latchkey-background" // of the gin rows
	replayName      = "latchkey-replay"     // of the row idempotent
	handMadeName    = "singleflight+SETNX"  // of the rows of once
)

// peers are the libraries that latchkey is held against.
var peers = []string{redislockName, redsyncName, rueidislockName}

// isOurs says that it is latchkey in some way: when it fails, the run is worth nothing.
func isOurs(name string) bool { return strings.HasPrefix(name, latchkeyName) }

func findLibrary(name string) (library, error) {
	all := slices.Concat(libraries, handlers)
	i := slices.IndexFunc(all, func(l library) bool { return l.name == name })
	if i < 0 {
		var names []string
		for _, l := range all {
			names = append(names, l.name)
		}
		return library{}, fmt.Errorf("no library %q: there are %s", name, strings.Join(names, "; "))
	}
	return all[i], nil
}

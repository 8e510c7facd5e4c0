package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	l := onRedis(t, client)
	if err := client.SAdd(background, "lock:k", "not a lock").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Lock(background, "k")
	wantWrongType(t, err)
	_, err = l.Inspect(background, "k")
	wantWrongType(t, err)
	_, err = l.ForceUnlock(background, "k")
	wantWrongType(t, err)
	if got := client.SMembers(background, "lock:k").Val(); !slices.Equal(got, []string{"not a lock"}) {
		t.Errorf("the value is %q now", got)
	}
}

func wantWrongType(t *testing.T, err error) {
	t.Helper()
	wantErr(t, err, core.ErrUnavailable)
	wantNot(t, err, core.ErrNotAcquired)
	if err == nil || !strings.Contains(core.Detail(err), "WRONGTYPE") {
		t.Errorf("error %v; want one that names WRONGTYPE", err)
	}
}

// user is a client that may only do what the rules say.
func user(t *testing.T, server *redistest.Server, rules ...string) *redis.Client {
	t.Helper()
	args := []any{"acl", "setuser", "limited", "reset", "on", ">secret"}
	for _, r := range rules {
		args = append(args, r)
	}
	if err := server.Client(t).Do(background, args...).Err(); err != nil {
		t.Fatal(err)
	}
	return server.Client(t, func(o *redis.Options) { o.Username, o.Password = "limited", "secret" })
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stalls := redistest.WatchStalls(t)
	for name, rules := range map[string][]string{
		"for the key":       {"~other:*", "&*", "+@all"},
		"for scripts":       {"~lock:*", "&*", "+@all", "-@scripting"},
		"to write a hash":   {"~lock:*", "&*", "+@all", "-hset"},
		"to set an expiry":  {"~lock:*", "&*", "+@all", "-pexpire"},
		"to set the token":  {"~lock:*", "&*", "+@all", "-getset"},
		"to read the clock": {"~lock:*", "&*", "+@all", "-time"},
	} {
		t.Run(name, func(t *testing.T) {
			l := onRedis(t, user(t, server, rules...))
			started := time.Now()
			_, err := l.Lock(background, "k")
			wantErr(t, err, core.ErrUnavailable)
			wantNot(t, err, core.ErrNotAcquired)
			wantNotPermitted(t, core.Detail(err))
			soonAfter(t, stalls, "the error came", started, time.Now(), 2*time.Second)
			// A lock without an end would be the worst of all.
			if !isFree(t, server.Client(t), "k") {
				t.Error("the lock stayed")
			}
		})
	}
}

// Nor does a call leave a lock without an end that first has to pass it on to who waits, which fails as well.
func TestNoPermissionToSetAnExpiryBesideAQueue(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	succeed(t, admin.Do(background, "zadd", "lock:{lock:k}:queue", fmt.Sprint(time.Now().UnixMicro(), ".5"), "q:1").Err())
	_, err := onRedis(t, user(t, server, "~lock:*", "&*", "+@all", "-pexpire")).TryLock(background, "k")
	wantErr(t, err, core.ErrUnavailable)
	if !isFree(t, admin, "k") {
		t.Error("the lock stayed")
	}
}

// Who may not set an expiry leaves nothing in a lock that others share either, and does not believe in one that it
// cannot renew.
func TestSharedLockWithoutExpiries(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	rules := []string{"~lock:*", "&*", "+@all"}
	limited := user(t, server, rules...)
	other := take(t, background, onRedis(t, admin), "k", core.Shared())
	k := take(t, background, onRedis(t, limited, core.Lease(3*time.Second)), "k", core.Shared())
	succeed(t, admin.Do(background, "acl", "setuser", "limited", "-pexpire").Err())
	awaitLost(t, k, core.ErrLost)
	_, err := onRedis(t, limited).Lock(background, "k", core.Shared())
	wantErr(t, err, core.ErrUnavailable)
	wantNotPermitted(t, core.Detail(err))
	unlock(t, other)
	unlock(t, take(t, background, onRedis(t, admin), "k", core.Wait(inTheEnd)))
	succeed(t, admin.Do(background, "acl", "setuser", "limited", "+pexpire").Err())
}

// wantNotPermitted looks for what one of the servers says of a user who lacks a right. Inside of
// a script they have different texts.
func wantNotPermitted(t *testing.T, text string) {
	t.Helper()
	for _, said := range []string{"NOPERM", "can't run this command", "ACL failure in script"} {
		if strings.Contains(text, said) {
			return
		}
	}
	t.Errorf("error %s; want one that says what is not permitted", text)
}

// Everything that latchkey needs, and no channel.
func TestWithoutChannelsItPolls(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stalls := redistest.WatchStalls(t)
	limited := user(t, server, "~lock:*", "resetchannels", "+@all")
	holder, waiting := onRedis(t, limited), onRedis(t, limited)
	k := take(t, background, holder, "k")
	monitor := server.Monitor(t)
	got := make(chan error, 1)
	go func() {
		k, err := waiting.Lock(background, "k", core.Wait(inTheEnd))
		if err == nil {
			err = k.Unlock(background)
		}
		got <- err
	}()
	redistest.Await(t, inTheEnd, "the other call to have asked twice", func() bool {
		asked := 0
		for _, line := range monitor.Lines(t) {
			if !line.Lua && line.Name() == "evalsha" {
				asked++
			}
		}
		return asked >= 2
	})
	released := time.Now()
	unlock(t, k)
	if err := <-got; err != nil {
		t.Error(err)
	}
	soonAfter(t, stalls, "the waiting call had the lock", released, time.Now(), 2*time.Second)
}

func TestReadOnlyReplica(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Start(t)
	host, port, _ := strings.Cut(master.Addr(), ":")
	client := replica.Client(t)
	if err := client.ReplicaOf(background, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := onRedis(t, client).Lock(background, "k")
	wantErr(t, err, core.ErrUnavailable)
	wantNot(t, err, core.ErrNotAcquired)
	if !redis.IsReadOnlyError(err) {
		t.Errorf("error %v; want READONLY as its cause", err)
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	l := onRedis(t, client)
	unlock(t, take(t, background, l, "warm-up"))
	if err := client.ConfigSet(background, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Lock(background, "k")
	wantErr(t, err, core.ErrUnavailable)
	if !isFree(t, client, "k") {
		t.Error("the lock stayed")
	}
}

// A lock that was granted in vain is released although there is no memory for the
// tombstone that is to refuse a late copy of the acquisition.
// Taken out, it stays for its lease.
func TestWithdrawalOutOfMemory(t *testing.T) {
	t.Parallel()
	server, proxy, l := throughProxy(t, core.Timeout(2*time.Second))
	admin := server.Client(t)
	hung := proxy.HangReply(sha(t, "acquire"))
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := l.Lock(ctx, "k")
		failed <- err
	}()
	redistest.Await(t, patience, "the lock to be granted", func() bool { return hung.Count() == 1 && !isFree(t, admin, "k") })
	succeed(t, admin.ConfigSet(background, "maxmemory", "1").Err())
	cancel()
	wantErr(t, <-failed, context.Canceled)
	redistest.Await(t, lease/2, "the lock to be free", func() bool { return isFree(t, admin, "k") })
	succeed(t, admin.ConfigSet(background, "maxmemory", "0").Err())
}

//go:build go1.25

package core_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// rightsInTheFAQ are those that docs/faq.md says a service needs.
func rightsInTheFAQ(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "ACL SETUSER shop on >secret ")
	rules, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/faq.md does not say which rights are needed")
	}
	return strings.Fields(rules)
}

// Users of before lack the right to copy: then one command takes all keys nevertheless.
func TestLockAllWithoutTheRightToCopy(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := onRedis(t, user(t, server, append(rightsInTheFAQ(t), "-copy")...))
	redistest.Await(t, inTheEnd, "one command for all keys", func() bool {
		m := takeAll(t, background, l, []string{"x", "y", "z"})
		for _, key := range m.Keys() {
			if ttl := server.Client(t).PTTL(background, "lock:"+key).Val(); ttl <= 0 || isFree(t, server.Client(t), key) {
				t.Errorf("%s: not locked for a time: %v", key, ttl)
			}
		}
		same := m.Token("x") == m.Token("z") // of one command
		unlockAll(t, m)
		return same
	})
}

func TestRightsInTheFAQSuffice(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := user(t, server, rightsInTheFAQ(t)...)
	a, b := onRedis(t, client, core.Lease(6*time.Second)), onRedis(t, client)

	var all sync.WaitGroup
	for i := range 8 {
		l := []*core.Locker{a, b}[i%2]
		all.Go(func() {
			for range 20 {
				k := take(t, background, l, "k")
				unlock(t, take(t, k.Context(), l, "k"), k)
			}
		})
	}
	all.Wait()

	k := take(t, background, a, "k", core.KeepFor(time.Minute))
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	gaveUp := make(chan error, 1)
	go func() {
		_, err := b.Lock(ctx, "k")
		gaveUp <- err
	}()
	awaitSubscriber(t, server.Client(t), "k")
	awaitRenewals(t, a, 1, k)
	cancel()
	wantErr(t, <-gaveUp, context.Canceled)
	if _, err := k.TTL(background); err != nil {
		t.Error(err)
	}
	unlock(t, k)
	redistest.Await(t, inTheEnd, "one command for all keys", func() bool {
		unlockAll(t, takeAll(t, background, a, []string{"x", "y", "z"}))
		return strings.Contains(server.Client(t).Info(background, "commandstats").Val(), "cmdstat_copy:")
	})
	if freed, err := b.ForceUnlock(background, "k"); !freed || err != nil {
		t.Error(freed, err)
	}
	prolonged := take(t, background, a, "prolonged")
	server.Client(t).Expire(background, "lock:prolonged", time.Hour)
	_, err := b.Lock(background, "prolonged", core.NoWait())
	wantErr(t, err, core.ErrNotAcquired)
	unlock(t, prolonged)
	if refused := server.Client(t).Do(background, "acl", "log").Val().([]any); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

// Who enters a lock that he cannot prolong would believe in it for longer than it lasts.
func TestEntryWithoutExpiries(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limited := onRedis(t, user(t, server, append(rightsInTheFAQ(t), "-pexpire")...))
	k := take(t, background, onRedis(t, server.Client(t)), "k")
	_, err := limited.TryLock(k.Context(), "k")
	wantErr(t, err, core.ErrUnavailable)
	unlock(t, k)
	awaitFree(t, server.Client(t), "k")
}

// Nor does the queue of a user last who may not have it end, when his process dies.
func TestQueueWithoutExpiries(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"-pexpire", "-pttl"} {
		server := redistest.Start(t)
		admin, limited := server.Client(t), onRedis(t, user(t, server, append(rightsInTheFAQ(t), right)...))
		k, waiting := take(t, background, onRedis(t, admin), "k"), make(chan error, 1)
		go func() { _, err := limited.Lock(background, "k", core.Wait(100*time.Millisecond)); waiting <- err }()
		redistest.Await(t, inTheEnd, "the wait to be over", func() bool {
			if admin.PTTL(background, waitQueue).Val() == -1 {
				t.Errorf("%s: it has no end", right)
			}
			return len(waiting) > 0
		})
		if err := <-waiting; err == nil {
			t.Errorf("%s: it has the lock", right)
		}
		unlock(t, k)
	}
}

// A user may lose rights at any time. Taken out, the lock is lost, or parked for nobody, though Handover has failed.
func TestHandoverWithoutAllRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	l := onRedis(t, user(t, server, rightsInTheFAQ(t)...))
	for _, right := range []string{"hset", "hdel", "pexpire"} {
		k := take(t, background, l, right)
		for _, rule := range []string{"-" + right, "+" + right} {
			if err := admin.Do(background, "acl", "setuser", "limited", rule).Err(); err != nil {
				t.Fatal(err)
			}
			if rule[0] == '-' {
				_, err := k.Handover(background, time.Hour)
				wantErr(t, err, core.ErrUnavailable)
			}
		}
		if n, err := k.Count(background); n != 1 || err != nil {
			t.Errorf("without %s: %d holds, %v", right, n, err)
		}
		unlock(t, k)
		if !isFree(t, admin, right) {
			t.Errorf("without %s: it is not free", right)
		}
	}
}

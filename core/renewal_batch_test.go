//go:build go1.25

package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Taken out, each lock is renewed by a command of its own: ten thousand of them keep
// the processor busy.
func TestLocksAreRenewedTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(3 * time.Second))
		var locks []*core.Lock
		for i := range 300 {
			if i >= 200 {
				time.Sleep(time.Millisecond)
			}
			locks = append(locks, take(t, background, l, fmt.Sprint(i)))
		}
		time.Sleep(2 * time.Second) // by then it is known that they may
		before := len(s.commands(renew))
		time.Sleep(10 * time.Second)
		// Of the first 200 each time four, as no command has more than 64; of the
		// others one every 50 ms: 60 or a few more.
		if n := len(s.commands(renew)) - before; n < 54 || n > 75 {
			t.Errorf("%d commands", n)
		}
		unlock(t, locks...)
	})
}

// Taken out, all locks that were taken at once are renewed at once, every time: other
// clients of that Redis wait for so long.
func TestBurstOfRenewalsIsSpread(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(3 * time.Second))
		var locks []*core.Lock
		for i := range 1200 {
			locks = append(locks, take(t, background, l, fmt.Sprint(i)))
		}
		time.Sleep(1500 * time.Millisecond)
		arrived := map[time.Time]bool{}
		for _, c := range s.commands(renew) {
			arrived[c.at] = true
		}
		if len(arrived) < 3 { // 512 at a time
			t.Errorf("1200 renewals arrived at %d times", len(arrived))
		}
		unlock(t, locks...)
	})
}

// Taken out, what is wrong with one lock is wrong with all that travel with it.
func TestLocksThatAreRenewedTogetherHaveOutcomesOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(3 * time.Second))
		locks := map[string]*core.Lock{}
		for _, key := range []string{"a", "deleted", "b", "of another type", "c"} {
			locks[key] = take(t, background, l, key)
		}
		s.Del("lock:deleted")
		s.Del("lock:of another type")
		if _, err := s.SAdd("lock:of another type", "text"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		end, err := endOf(locks["deleted"].Context())
		wantErr(t, err, core.ErrLost)
		wantTime(t, "it was told so", end.Sub(began), 980*time.Millisecond, time.Second)
		end, err = endOf(locks["of another type"].Context())
		wantErr(t, err, core.ErrLost)
		wantTime(t, "it was told nothing", end.Sub(began), 2990*time.Millisecond, 2990*time.Millisecond)
		time.Sleep(time.Minute)
		unlock(t, locks["a"], locks["b"], locks["c"])
		synctest.Wait()
	})
}

// A client that is none for clusters may speak to a node of one.
// Taken out, all its locks are lost as soon as two of them are renewed together.
func TestRenewalThroughANodeOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	node := cluster.MasterFor(t, "lock:k0")
	client := node.Client(t)
	l := onRedis(t, client, core.Lease(6*time.Second))
	var locks []*core.Lock
	for i := 0; len(locks) < 5; i++ {
		if key := fmt.Sprint("k", i); cluster.MasterFor(t, "lock:"+key) == node {
			locks = append(locks, take(t, background, l, key))
		}
	}
	awaitRenewals(t, l, 2, locks...)
	unlock(t, locks...)
}

// A Redis that starts anew knows none of them. Taken out, a holder learns of it with its next renewal only.
func TestReconnectRenewsAllLocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		busy := take(t, background, s.locker(), "busy")
		l := s.locker(core.Lease(30 * time.Second))
		var locks []*core.Lock
		for _, key := range numbered(0, 1000) {
			locks = append(locks, take(t, background, l, key))
		}
		ctx, cancel := context.WithCancel(background)
		waiting := start(ctx, l, "busy") // so that there is a connection to break
		for range 3 {
			time.Sleep(5 * time.Second)
			before := len(s.commands(renew))
			s.breakConnections()
			time.Sleep(time.Second)
			arrived, renewed := map[time.Time]bool{}, 0
			for _, c := range s.commands(renew)[before:] {
				arrived[c.at] = true
				for _, arg := range c.args {
					if strings.HasPrefix(arg, "lock:k") {
						renewed++
					}
				}
			}
			if renewed < 1000 || renewed > 1002 || len(arrived) < 4 {
				t.Errorf("%d renewals at %d times", renewed, len(arrived))
			}
			before = len(s.commands(renew))
			s.breakConnections() // not again so soon
			time.Sleep(time.Second)
			if n := len(s.commands(renew)) - before; n > 2 {
				t.Errorf("%d more", n)
			}
		}
		time.Sleep(5 * time.Second)
		s.Del("lock:k1")
		s.breakConnections()
		time.Sleep(time.Second)
		wantErr(t, context.Cause(locks[1].Context()), core.ErrLost)
		wantErr(t, context.Cause(locks[2].Context()))
		cancel()
		<-waiting
		unlock(t, busy)
		unlock(t, slices.Delete(locks, 1, 2)...)
	})
}

// A process for which nobody waits has no connection that would tell. Any command does. Taken out, a holder learns of it with its next
// renewal only.
func TestCommandThatFindsRedisEmptyRenewsAllLocks(t *testing.T) {
	for name, command := range map[string]func(l *core.Locker){
		"of a call":    func(l *core.Locker) { _ = l.Do(background, "other", nothing) },
		"of many":      func(l *core.Locker) { _ = l.DoAll(background, []string{"other", "another"}, nothing) },
		"of a renewal": func(*core.Locker) { time.Sleep(6 * time.Second) }, // of the first lock
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker(core.Lease(30 * time.Second))
				command(l)
				time.Sleep(time.Second)
				command(l) // all scripts that it needs have run
				var locks []*core.Lock
				for _, key := range numbered(0, 10) {
					locks = append(locks, take(t, background, l, key))
					time.Sleep(time.Second / 2)
				}
				time.Sleep(10 * time.Second) // renewals have run, too
				s.restartEmpty()
				command(l)
				time.Sleep(time.Second)
				for _, k := range locks {
					wantErr(t, context.Cause(k.Context()), core.ErrLost)
				}
			})
		})
	}
}

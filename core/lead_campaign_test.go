package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

func never(tb testing.TB) func(context.Context) error {
	return func(context.Context) error { tb.Error("fn ran"); return nil }
}

// A campaign has no end but that of its context, whatever becomes of Redis.
func TestCampaignOutlivesAnOutage(t *testing.T) {
	for name, fail := range map[string]func(s *embedded){
		"connections are refused": (*embedded).outage,
		"no answer":               func(s *embedded) { s.failAll(hang, acquire) },
		"errors":                  func(s *embedded) { s.failAll(refuse("LOADING Redis is loading"), acquire) },
		"no rights":               func(s *embedded) { s.failAll(refuse("NOPERM"), acquire) },
	} {
		for _, waiting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, waiting: %v", name, waiting), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					const long = 3 * time.Minute
					l, other := s.locker(), s.locker()
					var holder *core.Lock
					if waiting {
						holder = take(t, background, other, "k")
					} else {
						fail(s)
					}
					c := campaign(background, l)
					if waiting {
						c.waits(t)
						fail(s)
					}
					time.Sleep(10 * time.Second)
					asked, most := len(s.commands(acquire)), 0
					for range 180 {
						time.Sleep(time.Second)
						c.waits(t)
						most = max(most, blockedIn(ofCore...))
					}
					if n := len(s.commands(acquire)) - asked; n > 3*int(long/time.Second) {
						t.Errorf("asked %d times in %v", n, long)
					}
					if most > 10 {
						t.Errorf("%d goroutines", most)
					}
					s.heal()
					if holder != nil {
						_ = holder.Unlock(background)
					}
					c.term(t, 10*time.Second)
					c.end(t)
				})
			})
		}
	}
}

func TestLeadFailsAtOnceWithWhatWillNotMend(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		fixed, later := s.locker(core.FixedLease(time.Minute)), s.locker(core.BackgroundRelease())
		for name, err := range map[string]error{
			"bad option":               l.Lead(background, "k", never(t), core.Lease(0)),
			"Wait":                     l.Lead(background, "k", never(t), core.Wait(time.Hour)),
			"NoWait":                   l.Lead(background, "k", never(t), core.NoWait()),
			"MaxWaiters":               l.Lead(background, "k", never(t), core.MaxWaiters(9)),
			"KeepFor":                  l.Lead(background, "k", never(t), core.KeepFor(time.Hour)),
			"FixedLease":               l.Lead(background, "k", never(t), core.FixedLease(time.Hour)),
			"FixedLease of the Locker": fixed.Lead(background, "k", never(t)),
			"Shared":                   l.Lead(background, "k", never(t), core.Shared()),
			"Permits":                  l.Lead(background, "k", never(t), core.Permits(1)),
			"Owner":                    l.Lead(background, "k", never(t), core.Owner("me")),
			"OwnerBegin":               l.Lead(background, "k", never(t), adapter.OwnerBegin("me:")),
			"Ticket":                   l.Lead(background, "k", never(t), adapter.Ticket("t")),
			"Attempt":                  l.Lead(background, "k", never(t), adapter.Attempt(strings.Repeat("a", 16), time.Minute, false)),
			"BackgroundRelease":        later.Lead(background, "k", never(t), core.BackgroundRelease()),
		} {
			if err == nil {
				t.Errorf("%s: accepted", name)
			}
			wantNot(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		}
		if err := fixed.Lead(background, "k", func(context.Context) error { return nil }, core.Lease(time.Minute)); err != nil {
			t.Errorf("a Locker with FixedLease, and a Lease: %v", err)
		}
		wantErr(t, l.Lead(background, "", never(t)), core.ErrInvalidKey)
		shared := take(t, background, l, "k", core.Shared())
		wantErr(t, l.Lead(shared.Context(), "k", never(t)), core.ErrUpgrade)
		unlock(t, shared)
		all, err := l.LockAll(background, []string{"x", "y"})
		if err != nil {
			t.Fatal(err)
		}
		busy := take(t, background, l, "k")
		wantErr(t, l.Lead(all.Context(), "k", never(t)), core.ErrNotAcquired) // it comes before them in order
		unlock(t, busy)
		_ = all.Unlock(background)

		client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial})
		gone, err := core.New(client, quiet)
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		wantErr(t, gone.Lead(background, "k", never(t)), redis.ErrClosed)
		_ = gone.Close(background)
		wantErr(t, gone.Lead(background, "k", never(t)), core.ErrClosed)
	})
}

// A campaign inside of a lock is not bounded to a lease, but not endless in a circle.
func TestLeadInsideOfALock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "outer")
		leader := campaign(background, l)
		inside := campaign(outer.Context(), l)
		time.Sleep(3 * time.Minute)
		inside.waits(t)
		err := l.Do(leader.term(t, prompt), "outer", never(t))
		wantErr(t, err, core.ErrDeadlock)
		leader.end(t)
		again := l.Lead(inside.term(t, prompt), "k", func(ctx context.Context) error { // it is the leader already
			k, _ := core.FromContext(ctx)
			if n, err := k.Count(ctx); n != 2 {
				t.Errorf("count %d, %v", n, err)
			}
			return nil
		})
		if again != nil {
			t.Error(again)
		}
		inside.end(t)
		unlock(t, outer)
	})
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		leading, outer := take(t, background, l, "k"), take(t, background, l, "outer")
		circle := start(leading.Context(), l, "outer")
		wantErr(t, l.Lead(outer.Context(), "k", never(t)), core.ErrDeadlock)
		unlock(t, outer)
		unlock(t, (<-circle).lock, leading)
	})
}

// What New was told for usual calls would end a campaign, or keep the next leader out.
func TestLeadIgnoresDefaultsOfTheLocker(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Wait(3*time.Second), core.MaxWaiters(1), core.KeepFor(24*time.Hour))
		for c, rest := campaign(background, l), []*candidate{campaign(background, l), campaign(background, l), campaign(background, l)}; ; c, rest = rest[0], rest[1:] {
			c.term(t, prompt)
			time.Sleep(time.Minute)
			c.end(t)
			if len(rest) == 0 {
				break
			}
		}
		s.isFree("k")
	})
}

func TestCampaignEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		for name, trouble := range map[string]func(){"waiting": func() {}, "in an outage": s.outage} {
			ctx, cancel := context.WithCancelCause(background)
			c := campaign(ctx, l)
			trouble()
			time.Sleep(20 * time.Second)
			c.waits(t)
			cancel(errEnough)
			began := time.Now()
			err := <-c.done
			wantErr(t, err, context.Canceled, errEnough, core.ErrNotAcquired)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("it says the same twice: %v", err)
			}
			wantTime(t, name+": Lead returned", time.Since(began), 0, prompt)
			s.heal()
			time.Sleep(20 * time.Second)
		}
		_ = k.Unlock(background)
	})
}

// Close ends campaigns at once, and leadership when its patience is over.
func TestCloseEndsLead(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		leader, waiting := campaign(background, l), campaign(background, l)
		term := leader.term(t, prompt)
		closed := make(chan error, 1)
		go func() { closed <- l.Close(within(time.Minute)) }()
		began := time.Now()
		wantErr(t, <-waiting.done, core.ErrClosed)
		wantTime(t, "the campaign ended", time.Since(began), 0, 0)
		ended, cause := endOf(term)
		wantErr(t, cause, core.ErrClosed)
		wantTime(t, "the term ended", ended.Sub(began), time.Minute, time.Minute)
		if err := <-leader.done; !errors.Is(err, core.ErrClosed) || !strings.Contains(err.Error(), "cleaning up") {
			t.Errorf("error %v; want fn's and ErrClosed", err)
		}
		wantErr(t, <-closed, context.DeadlineExceeded)
	})
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		s.failAll(refuse("MISCONF Redis cannot save"), acquire)
		c := campaign(background, l)
		time.Sleep(10*time.Second + time.Millisecond)
		began := time.Now()
		_ = l.Close(background)
		wantErr(t, <-c.done, core.ErrClosed)
		wantTime(t, "a campaign in an outage ended", time.Since(began), 0, 0)
	})
}

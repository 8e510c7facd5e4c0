//go:build go1.25

package core_test

import (
	"context"
	"net"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// received does something with what a connection has received, before the process gets it.
type received struct {
	net.Conn
	do func([]byte)
}

func (c received) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.do(p[:n])
	return n, err
}

// grantsArrive returns a Locker to which messages about grants come after that was done.
func (s *embedded) grantsArrive(t *testing.T, do func(), opts ...core.Option) *core.Locker {
	client := redis.NewClient(&redis.Options{
		Addr: s.addr,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := s.dial(ctx, network, addr)
			return received{c, func(data []byte) {
				if aGrant.Match(data) {
					do()
				}
			}}, err
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	return onRedis(t, client, opts...)
}

// granted has a call of l wait for a lock that is released then: right after the call has
// asked once more, so that it hears of the release long before it asks again. It returns its
// outcome.
func (s *embedded) granted(t *testing.T, l *core.Locker, opts ...core.Option) <-chan outcome {
	k := take(t, background, s.locker(), "k")
	waiting := start(background, l, "k", opts...)
	waits(t, waiting)
	for asked := len(s.commands(acquire)); len(s.commands(acquire)) == asked; {
		time.Sleep(time.Millisecond)
	}
	unlock(t, k)
	return waiting
}

// aGrant is a message that tells of one: hold, token and time.
var aGrant = regexp.MustCompile(`message\r\n(?s:.*)[0-9a-f]{40} \d+ \d+\r\n`)

// lease is for how long Redis keeps the lock, and what it takes for its lease.
func (s *embedded) lease() (ttl time.Duration, field string) {
	_, field = s.mode()
	return s.TTL("lock:k"), field
}

// What a release grants lasts for a moment only, and then as long as any other lock.
func TestAGrantIsRenewed(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 4 * time.Second, 30 * time.Second} {
		t.Run(lease.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				o := <-s.granted(t, s.locker(), core.Lease(lease))
				if ttl, field := s.lease(); ttl != time.Second || field != "0" {
					t.Errorf("the grant lasts %v, with a lease of %q", ttl, field)
				}
				time.Sleep(30 * time.Millisecond)
				if ttl, field := s.lease(); ttl > lease || ttl < lease-10*time.Millisecond || field == "0" {
					t.Errorf("after the renewal it lasts %v, with a lease of %q", ttl, field)
				}
				time.Sleep(time.Minute)
				if err := context.Cause(o.lock.Context()); err != nil {
					t.Error(err)
				}
				unlock(t, o.lock)
				s.isFree("k")
			})
		})
	}
}

// Taken out, a holder that cannot renew works on beside the next one.
func TestInvariant1AGrantThatIsNotRenewedEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		s.failAll(hang, renew)
		o := <-s.granted(t, s.locker())
		began := time.Now()
		at, why := endOf(o.lock.Context())
		wantTime(t, "it ended", at.Sub(began), 900*time.Millisecond, time.Second)
		wantErr(t, why, core.ErrLost)
		if s.Exists("lock:k") && s.TTL("lock:k") > 50*time.Millisecond {
			t.Errorf("Redis keeps it for %v", s.TTL("lock:k"))
		}
		s.heal()
	})
}

// An answer to the first renewal that takes its time is good enough.
func TestFirstRenewalMayBeSlow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		s.fail(renew, lateReply(800*time.Millisecond), lateReply(3*time.Second))
		o := <-s.granted(t, s.locker(core.Lease(12*time.Second)))
		time.Sleep(time.Minute)
		if err := context.Cause(o.lock.Context()); err != nil {
			t.Error(err)
		}
		for i, c := range s.commands(renew) {
			if lease := c.args[len(c.args)-1]; (i == 0) != (lease == "first") || !slices.Contains(c.args, "12000") {
				t.Errorf("renewal %d is by %q", i, c.args)
			}
		}
		unlock(t, o.lock)
	})
}

// A message that was on its way for long says nothing about the lock any more.
// Taken out, the process starts work under a lock that others have had since.
func TestInvariant1GrantThatArrivesLate(t *testing.T) {
	for late, asks := range map[time.Duration]bool{100 * time.Millisecond: false, 700 * time.Millisecond: true, 1200 * time.Millisecond: true} {
		t.Run(late.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.grantsArrive(t, func() { time.Sleep(late) })
				waiting := s.granted(t, l)
				asked := len(s.commands(acquire))
				o := <-waiting
				if o.err != nil {
					t.Fatal(o.err)
				}
				if n := len(s.commands(acquire)) - asked; asks && n == 0 { // a poll may have come meanwhile
					t.Errorf("%d acquisitions after a message that took %v", n, late)
				}
				if held := s.held("k"); held != o.lock.Owner()+"=1" {
					t.Errorf("Redis shows %q", held)
				}
				time.Sleep(time.Minute)
				if err := o.lock.Context().Err(); err != nil {
					t.Error(context.Cause(o.lock.Context()))
				}
				unlock(t, o.lock)
			})
		})
	}
}

// How old a message is cannot be told when the clock of Redis was set forward meanwhile.
func TestInvariant1GrantAfterTheClockWasSetForward(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.grantsArrive(t, func() { time.Sleep(300 * time.Millisecond) })
		k := take(t, background, s.locker(), "k")
		waiting := start(background, l, "k")
		waits(t, waiting)
		s.setBack(-2 * time.Second)
		asked := len(s.commands(acquire))
		unlock(t, k)
		o := <-waiting
		if o.err != nil {
			t.Fatal(o.err)
		}
		if n := len(s.commands(acquire)) - asked; n == 0 {
			t.Error("it was believed without asking")
		}
		unlock(t, o.lock)
	})
}

// Whoever leaves just when it is granted the lock gives it back at once.
func TestInvariant3GrantThatNobodyWants(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(cancel context.CancelFunc, l *core.Locker)
		want  error
	}{
		"cancelled": {func(cancel context.CancelFunc, _ *core.Locker) { cancel() }, core.ErrNotAcquired},
		"closed": {func(_ context.CancelFunc, l *core.Locker) {
			if err := l.Close(background); err != nil {
				panic(err)
			}
		}, core.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				ctx, cancel := context.WithCancel(background)
				var l *core.Locker
				arrives := make(chan struct{})
				l = s.grantsArrive(t, func() {
					close(arrives)
					time.Sleep(10 * time.Millisecond)
				})
				k := take(t, background, s.locker(), "k")
				waiting := start(ctx, l, "k")
				waits(t, waiting)
				time.Sleep(time.Millisecond)
				last := start(background, s.locker(), "k")
				waits(t, last)
				unlock(t, k)
				<-arrives
				c.leave(cancel, l)
				wantErr(t, (<-waiting).err, c.want)
				isServed(t, "the next", last, prompt)
				cancel()
			})
		})
	}
}

// A grant that arrives while Close refuses new locks, and before it wakes who waits, is given
// back: the lock is nobody's when Close has returned.
func TestGrantWhileTheLockerCloses(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		k := take(t, background, s.locker(), "k")
		ctx := &foreign{Context: background, done: make(chan struct{})}
		defer close(ctx.done)
		waiting := start(ctx, l, "k")
		waits(t, waiting)
		closed := closesWhenAsked(t, l, ctx)
		unlock(t, k)
		wantErr(t, (<-waiting).err, core.ErrClosed)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		s.isFree("k")
	})
}

// A process that messages do not reach, though Redis takes them for delivered, has its
// share, and does not slow the others down for long.
func TestLostGrants(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, s.locker(), "k")
		waiting := start(background, l, "k") // subscribes
		waits(t, waiting)
		own := s.channelOfAWaitingCall()
		s.failAll(func(_ *embedded, p *peer, _ string, args []string) bool {
			if args[0] == own {
				p.WriteInt(1)
			}
			return args[0] == own
		}, "publish")
		unlock(t, k)
		unlock(t, (<-waiting).lock)

		ctx, cancel := context.WithCancel(background)
		var working sync.WaitGroup
		gaps := []*gap{{last: time.Now()}, {last: time.Now()}, {last: time.Now()}}
		for i, l := range []*core.Locker{s.locker(), s.locker(), l} {
			working.Go(func() { gaps[i].work(ctx, t, l) })
		}
		time.Sleep(8 * time.Second)
		cancel()
		working.Wait()
		for i, g := range gaps {
			t.Logf("%d turns, longest wait %v", g.turns, g.longest)
			if g.turns < []int{200, 200, 10}[i] || g.longest > 2*time.Second+prompt {
				t.Error("that is too little, or too long")
			}
		}
	})
}

// A process that hears messages, and does nothing about them, costs the time of a grant.
func TestGrantToAFrozenProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		mustAdd(s, "frozen:7")
		message := s.hear(processChannel("frozen")) // its position is a second old
		waiting := start(background, s.locker(), "k")
		began := time.Now()
		unlock(t, k)
		if m := <-message; m == "0" {
			t.Errorf("it was told %q; want a grant", m)
		}
		if held := s.held("k"); held != "frozen:7=1" {
			t.Errorf("Redis shows %q", held)
		}
		o := <-waiting
		wantTime(t, "the next had it", time.Since(began), time.Second, 2*time.Second+prompt)
		unlock(t, o.lock)
	})
}

// A message that comes once more, over a connection that was replaced, does not end the
// lock that it was about.
func TestInvariant1GrantThatIsHeardOfAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, s.locker(), "k")
		waiting := start(background, l, "k")
		waits(t, waiting)
		process := s.channelOfAWaitingCall()
		heard := s.hear(process)
		unlock(t, k)
		o := <-waiting
		message := <-heard
		for range 3 {
			s.Publish(process, message)
			time.Sleep(100 * time.Millisecond)
			if held := s.held("k"); held != o.lock.Owner()+"=1" {
				t.Fatalf("Redis shows %q", held)
			}
		}
		unlock(t, o.lock)
		again := take(t, background, l, "k")
		s.Publish(process, message)
		synctest.Wait()
		if held := s.held("k"); held != again.Owner()+"=1" {
			t.Errorf("Redis shows %q", held)
		}
		unlock(t, again)
	})
}

// Tokens grow over grants and locks that are passed on in memory.
func TestTokensGrowOverGrants(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		ctx, cancel := context.WithCancel(background)
		tokens := make(chan int64, 10_000)
		done := make(chan struct{})
		for range 3 {
			l := s.locker()
			for range 4 {
				go func() {
					for {
						k, err := l.Lock(ctx, "k")
						if err != nil {
							done <- struct{}{}
							return
						}
						tokens <- k.Token()
						time.Sleep(3 * time.Millisecond)
						unlock(t, k)
					}
				}()
			}
		}
		time.Sleep(3 * time.Second)
		cancel()
		for range 12 {
			<-done
		}
		close(tokens)
		last, n := int64(0), 0
		for token := range tokens {
			if token <= last {
				t.Fatalf("token %d after %d", token, last)
			}
			last, n = token, n+1
		}
		if n < 500 {
			t.Errorf("%d locks in three seconds", n)
		}
	})
}

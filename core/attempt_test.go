//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

const (
	request = "00112233445566778899aabbccddeeff"
	other   = "ffeeddccbbaa99887766554433221100"
	kept    = time.Hour
)

func attemptAt(request string) core.Option { return adapter.Attempt(request, kept, false) }

// attempts takes the lock for an attempt, and checks its number.
func attempts(t *testing.T, l *core.Locker, want int, opts ...core.Option) *core.Lock {
	t.Helper()
	k := take(t, background, l, "k", append([]core.Option{attemptAt(request), core.NoWait()}, opts...)...)
	if got := adapter.AttemptOf(k); got != want {
		t.Errorf("it is attempt %d, want %d", got, want)
	}
	return k
}

func wantAnswer(t *testing.T, l *core.Locker, want string, opts ...core.Option) {
	t.Helper()
	_, err := l.Lock(background, "k", append([]core.Option{attemptAt(request), core.NoWait()}, opts...)...)
	if got, ok := adapter.AnswerOf(err); !ok || string(got) != want {
		t.Errorf("the answer is %.40q, %v; want %.40q", got, err, want)
	}
}

func answer(t *testing.T, k *core.Lock, text string) {
	t.Helper()
	if err := adapter.Answer(background, k, []byte(text), kept); err != nil {
		t.Errorf("Answer: %v", err)
	}
}

// The first attempt is the only one, and all later calls get its answer, byte for byte.
func TestAnsweredRequestCountsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := attempts(t, a, 1)
		_, err := b.TryLock(background, "k", attemptAt(request))
		if busy := wantBusy(t, err); busy.RetryAfter > time.Second || busy.Done {
			t.Errorf("busy for %v, done: %v", busy.RetryAfter, busy.Done)
		}
		time.Sleep(5 * time.Minute) // it is renewed
		text := "paid \x00\xff\r\n" + strings.Repeat("é", 100_000)
		answer(t, k, text)
		wantErr(t, k.Unlock(background), core.ErrNotHeld)
		if info, err := a.Inspect(background, "k"); !info.Locked || info.Owner != "" || info.TTL != kept || err != nil {
			t.Errorf("Inspect: %+v, %v", info, err)
		}
		time.Sleep(kept - time.Second)
		wantAnswer(t, b, text)
		wantAnswer(t, b, text, core.Wait(time.Minute)) // it is there: nothing to wait for
		_, err = a.TryLock(background, "k")
		if busy := wantBusy(t, err); !busy.Done || busy.RetryAfter != time.Second {
			t.Errorf("a plain call is busy for %v, done: %v", busy.RetryAfter, busy.Done)
		}
		time.Sleep(time.Second)
		s.isFree("k")
		unlockFailed(t, attempts(t, b, 1))
		s.isFree("k")
	})
}

func unlockFailed(t *testing.T, k *core.Lock) {
	t.Helper()
	wantErr(t, k.Abort(background))
}

// Another request with the key is refused at any time: in flight, when nobody knows what has
// become of the first one, and when that has been answered.
func TestKeyIsOfOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		refused := func() {
			t.Helper()
			_, err := b.Lock(background, "k", attemptAt(other), core.Wait(time.Minute))
			wantErr(t, err, adapter.ErrReused)
			wantNot(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		}
		k := attempts(t, a, 1)
		refused()
		unlock(t, k) // without an answer
		refused()
		answer(t, attempts(t, a, 2), "paid")
		s.client().Persist(background, "lock:k")
		refused()
		if ttl := s.TTL("lock:k"); ttl != kept {
			t.Errorf("an answer that somebody has given no end lasts %v, want %v", ttl, kept)
		}
		wantAnswer(t, a, "paid")
	})
}

// Nobody knows whether an attempt has done its work whose process has died. It is known for
// as long as an answer is kept, and no longer, that there was one.
func TestAttemptOfWhichNobodyKnows(t *testing.T) {
	for what, begin := range map[string]func(t *testing.T, s *embedded, l *core.Locker, n int){
		"died": func(t *testing.T, s *embedded, l *core.Locker, n int) {
			k := attempts(t, l, n, core.FixedLease(10*time.Second))
			<-k.Context().Done()
			wantErr(t, adapter.Answer(background, k, []byte("late"), kept), core.ErrLost)
			time.Sleep(time.Second)
		},
		"unlocked without an answer": func(t *testing.T, s *embedded, l *core.Locker, n int) {
			unlock(t, attempts(t, l, n))
		},
		"evicted by an operator": func(t *testing.T, s *embedded, l *core.Locker, n int) {
			k := attempts(t, l, n)
			owners := []string{k.Owner()}[n-1:] // first that owner, then whoever it is
			if freed, err := l.ForceUnlock(background, "k", owners...); !freed || err != nil {
				t.Errorf("ForceUnlock(%q): %v, %v", owners, freed, err)
			}
			wantErr(t, adapter.Answer(background, k, []byte("late"), kept), core.ErrLost)
		},
		"closed while it was made": func(t *testing.T, s *embedded, _ *core.Locker, n int) {
			l := s.open()
			k := attempts(t, l, n)
			ended, cancel := context.WithCancel(background)
			cancel()
			wantErr(t, l.Close(ended), context.Canceled)
			wantErr(t, context.Cause(k.Context()), core.ErrClosed)
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				begin(t, s, l, 1)
				_, err := l.TryLock(background, "k", adapter.Attempt(request, kept, true))
				wantErr(t, err, adapter.ErrOutcomeUnknown)
				begin(t, s, l, 2)
				unlockFailed(t, attempts(t, l, 3)) // the first two may still have done the work
				_, err = l.TryLock(background, "k", adapter.Attempt(request, kept, true))
				wantErr(t, err, adapter.ErrOutcomeUnknown)
				time.Sleep(kept - time.Second)
				answer(t, attempts(t, l, 4), "paid")
				wantAnswer(t, l, "paid", adapter.Attempt(request, kept, true))
				if ttl := s.TTL("lock:k"); ttl != kept {
					t.Errorf("the answer is kept for %v", ttl)
				}
			})
			bubble(t, func(t *testing.T, s *embedded) {
				begin(t, s, s.locker(), 1)
				time.Sleep(kept + time.Minute)
				s.isFree("k")
			})
		})
	}
}

// An answer, and what nobody knows of, are no dedup windows.
func TestInspectTellsWhatBecameOfARequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		inspects := func(what string, want core.Info) {
			t.Helper()
			if info, err := l.Inspect(background, "k"); err != nil || !reflect.DeepEqual(info, want) {
				t.Errorf("%s: %+v, %v; want %+v", what, info, err, want)
			}
		}
		k := attempts(t, l, 1)
		held := func(k *core.Lock, attempt int) core.Info {
			return core.Info{
				Locked: true, State: core.StateHeld, Form: "exclusive", Owner: k.Owner(), Count: 1, TTL: lease + kept,
				Holders: []core.Holder{{Owner: k.Owner(), Count: 1, TTL: lease, Lease: lease}}, Attempt: attempt,
			}
		}
		inspects("the first attempt", held(k, 1))
		unlock(t, k)
		inspects("nobody knows", core.Info{Locked: true, State: core.StateOutcomeUnknown, TTL: kept, Attempt: 1})
		k = attempts(t, l, 2)
		inspects("the second attempt", held(k, 2))
		answer(t, k, "paid")
		inspects("answered", core.Info{Locked: true, State: core.StateAnswered, TTL: kept})
	})
}

// A first attempt that has failed leaves nothing.
func TestFailedAttemptLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		unlockFailed(t, attempts(t, l, 1))
		s.isFree("k")
		k := attempts(t, l, 1)
		k.DropWindow()
		answer(t, k, "sorry")
		s.isFree("k")
	})
}

// Who waits gets the answer as soon as it is there, and does not get the lock meanwhile; where the
// attempt has failed it makes the next one.
func TestWaitForAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := attempts(t, a, 1)
		waiting := []<-chan outcome{start(background, a, "k", attemptAt(request)), start(background, b, "k", attemptAt(request)), start(background, b, "k", attemptAt(request))}
		time.Sleep(20 * time.Second)
		for _, w := range waiting {
			waits(t, w)
		}
		answer(t, k, "paid")
		for _, w := range waiting {
			o := <-w
			if text, ok := adapter.AnswerOf(o.err); !ok || string(text) != "paid" {
				t.Errorf("%q, %v", text, o.err)
			}
			wantTime(t, "the answer", o.took, 20*time.Second, 20*time.Second+50*time.Millisecond)
		}
		if n := len(s.commands(release)); n > 1 {
			t.Errorf("%d releases: those who wait have nothing to give back", n)
		}
	})
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := attempts(t, a, 1)
		waiting := start(background, b, "k", attemptAt(request))
		time.Sleep(20 * time.Second)
		unlockFailed(t, k)
		o := <-waiting
		wantErr(t, o.err)
		answer(t, o.lock, "paid")
		wantTime(t, "the lock", o.took, 20*time.Second, 20*time.Second+50*time.Millisecond)
	})
}

// Whatever becomes of commands on their way, an attempt counts once, and an answer is not lost.
func TestAttemptOnABadNetwork(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.fail(acquire, lateReply(5*time.Second))
		_, err := l.TryLock(background, "k", attemptAt(request))
		wantErr(t, err, core.ErrUnavailable)
		time.Sleep(10 * time.Second)
		s.isFree("k") // it was taken back
		s.fail(acquire, lateRequest(5*time.Second))
		_, err = l.TryLock(background, "k", attemptAt(request))
		wantErr(t, err, core.ErrUnavailable)
		time.Sleep(10 * time.Second)
		s.isFree("k")

		s.fail(acquire, loseReply)
		unlockFailed(t, attempts(t, l, 1)) // the second copy has what the first has taken
		k := attempts(t, l, 1)
		unlock(t, k)
		s.fail(acquire, lateReply(5*time.Second))
		_, err = l.TryLock(background, "k", attemptAt(request))
		wantErr(t, err, core.ErrUnavailable)
		time.Sleep(10 * time.Second)
		k = attempts(t, l, 3) // what the first one has done is still unknown

		s.fail(release, lateReply(time.Second))
		answer(t, k, "paid")
		wantAnswer(t, l, "paid")
	})
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := attempts(t, l, 1)
		s.outage()
		wantErr(t, adapter.Answer(background, k, []byte("paid"), kept), core.ErrUnavailable)
		s.heal()
		time.Sleep(2 * time.Second)
		wantAnswer(t, l, "paid") // in the background
	})
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := attempts(t, l, 1)
		s.outage()
		wantErr(t, adapter.Answer(background, k, []byte("paid"), kept), core.ErrUnavailable)
		time.Sleep(time.Minute)
		s.heal()
		unlockFailed(t, attempts(t, l, 2)) // never without a number that tells
	})
}

// A plain call that waits beside those for attempts leaves nothing when it gives up.
func TestPlainCallBehindAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := attempts(t, l, 1)
		waiting := start(background, l, "k", core.Wait(time.Minute))
		answer(t, k, "paid")
		wantBusy(t, (<-waiting).err)
		synctest.Wait()
		if s.Exists(waitQueue) {
			t.Error("it is in the queue")
		}
	})
}

// A lock that was handed over is no attempt at another request.
func TestAttemptBehindAHandover(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		ticket := parkedBy(t, take(t, background, l, "k"), time.Minute)
		_, err := l.TryLock(background, "k", attemptAt(request))
		wantBusy(t, err)
		k, err := l.Resume(background, "k", ticket)
		succeed(t, err)
		unlock(t, k)
		unlock(t, attempts(t, l, 1))
	})
}

// The answer of an attempt whose lease has ended does not replace that of the next one.
func TestAnswerOfAnEarlierAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := attempts(t, a, 1)
		s.HDel("lock:k", "latchkey:holder:"+k.Owner())
		next := attempts(t, b, 2)
		wantErr(t, adapter.Answer(background, k, []byte("the first"), kept), core.ErrLost)
		answer(t, next, "the second")
		wantAnswer(t, a, "the second")
	})
}

func TestLockOfAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := attempts(t, l, 1)
		inner := take(t, k.Context(), s.locker(), "k")
		if n := adapter.AttemptOf(inner); n != 0 {
			t.Errorf("a lock that was entered is of attempt %d", n)
		}
		inner2 := take(t, k.Context(), l, "k")
		if err := adapter.Answer(background, inner2, nil, kept); err == nil {
			t.Error("a lock that was entered takes an answer")
		}
		unlock(t, inner, inner2)
		for _, l := range []*core.Locker{l, s.locker()} { // it would wait for itself
			_, err := l.Lock(k.Context(), "k", attemptAt(request))
			wantErr(t, err, core.ErrDeadlock)
		}
		inner = take(t, k.Context(), l, "k")
		unlockFailed(t, k)
		unlock(t, inner) // what the outer one has said counts
		s.isFree("k")
		k = attempts(t, l, 1)
		_, err := k.Handover(background, time.Minute)
		wantErr(t, err, core.ErrNotHeld)
		waiting := start(background, l, "k", core.Wait(time.Second))
		_, err = l.Resume(background, "k", "ticket")
		wantErr(t, err, core.ErrTicket)
		wantBusy(t, (<-waiting).err)
		for _, owner := range []string{"", "another", k.Owner()} { // after which nobody is its owner
			if freed, err := l.ForceUnlock(background, "k", owner); freed != (owner == k.Owner()) || err != nil {
				t.Errorf("ForceUnlock(%q): %v, %v", owner, freed, err)
			}
		}
		wantErr(t, k.Unlock(background), core.ErrLost)
		unlock(t, attempts(t, l, 2)) // now nobody has it
		for _, owners := range [][]string{{""}, nil} {
			if freed, err := l.ForceUnlock(background, "k", owners...); !freed || err != nil {
				t.Errorf("ForceUnlock of what nobody has: %v, %v", freed, err)
			}
			s.isFree("k")
			unlock(t, attempts(t, l, 1))
		}
		unlockFailed(t, attempts(t, l, 2))
		if freed, err := l.ForceUnlock(background, "k"); !freed || err != nil {
			t.Errorf("ForceUnlock of what nobody knows: %v, %v", freed, err)
		}

		answer(t, attempts(t, l, 1), "paid")
		if freed, err := l.ForceUnlock(background, "k"); !freed || err != nil {
			t.Errorf("ForceUnlock of an answer: %v, %v", freed, err)
		}
		s.isFree("k")

		held := take(t, background, l, "k")
		_, err = l.TryLock(background, "k", attemptAt(request))
		wantBusy(t, err)
		waiting = start(background, l, "k", attemptAt(request))
		time.Sleep(10 * time.Second)
		waits(t, waiting)
		unlock(t, held)
		o := <-waiting
		wantErr(t, o.err)
		wantTime(t, "the lock", o.took, 10*time.Second, 10*time.Second+50*time.Millisecond)
		unlockFailed(t, o.lock)
		time.Sleep(time.Second) // or its token is ahead of the clock
		held = take(t, background, l, "k")
		waiting = start(background, l, "k", attemptAt(request))
		time.Sleep(time.Millisecond)
		unlock(t, held) // and not passed on, for then nobody would know of the attempt
		if o = <-waiting; adapter.AttemptOf(o.lock) != 1 {
			t.Errorf("attempt %d", adapter.AttemptOf(o.lock))
		}
		for _, keep := range []time.Duration{0, 367 * 24 * time.Hour} {
			if err := adapter.Answer(background, o.lock, nil, keep); err == nil {
				t.Errorf("an answer is kept for %v", keep)
			}
		}
		unlockFailed(t, o.lock) // it is held as before
		plain := take(t, background, l, "k")
		if err := adapter.Answer(background, plain, nil, kept); err == nil {
			t.Error("a plain lock takes an answer")
		}
		unlock(t, plain)
	})
}

func TestAttemptsThatDoNotGo(t *testing.T) {
	for what, opts := range map[string][]core.Option{
		"a window":        {attemptAt(request), core.KeepFor(time.Second)},
		"shared":          {core.Shared(), attemptAt(request)},
		"permits":         {core.Permits(2), attemptAt(request)},
		"an owner":        {core.Owner("me"), attemptAt(request)},
		"a ticket":        {adapter.Ticket("ticket"), attemptAt(request)},
		"no digest":       {attemptAt("")},
		"no hexadecimal":  {attemptAt(strings.Repeat("g", 32))},
		"nothing is kept": {adapter.Attempt(request, 0, false)},
		"kept too long":   {adapter.Attempt(request, 367*24*time.Hour, false)},
	} {
		if err := adapter.Validate(opts...); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := core.New(redis.NewClient(&redis.Options{}), attemptAt(request)); err == nil {
		t.Error("New: no error")
	}
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		_, err := l.LockAll(background, []string{"a", "b"}, attemptAt(request))
		if err == nil || !strings.Contains(err.Error(), "one key") {
			t.Errorf("LockAll: %v", err)
		}
		_, err = l.Resume(background, "k", "ticket", attemptAt(request))
		if err == nil || errors.Is(err, core.ErrTicket) {
			t.Errorf("Resume: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := quorumOf(t, []*embedded{newEmbedded(t), newEmbedded(t), newEmbedded(t)})
		_, err := l.TryLock(background, "k", attemptAt(request))
		if err == nil || !strings.Contains(err.Error(), "NewQuorum") || errors.Is(err, core.ErrUnavailable) {
			t.Errorf("in a quorum: %v", err)
		}
	})
}

// A lock that was granted to a call that left just then is not given to one for an attempt, of
// which nobody would know.
func TestGrantIsNoAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		for range 300 {
			k := take(t, background, a, "k")
			ctx, leave := context.WithCancel(background)
			leaves := start(ctx, b, "k")
			time.Sleep(time.Millisecond)
			stays := start(background, b, "k", attemptAt(request))
			time.Sleep(time.Millisecond)
			go leave()
			unlock(t, k)
			if o := <-leaves; o.err == nil {
				unlock(t, o.lock)
			}
			o := <-stays
			if o.err != nil || adapter.AttemptOf(o.lock) != 1 {
				t.Fatal(o.err, adapter.AttemptOf(o.lock))
			}
			unlockFailed(t, o.lock)
		}
	})
}

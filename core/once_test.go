//go:build go1.25

package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

type receipt struct {
	ID    int
	Lines []string `json:",omitempty"`
}

// runs counts what runs of a function, which takes a while.
type runs struct {
	n    atomic.Int32
	took time.Duration
}

func (r *runs) pay(ctx context.Context) (receipt, error) {
	n := r.n.Add(1)
	time.Sleep(r.took)
	return receipt{ID: int(n)}, nil
}

func (r *runs) want(t *testing.T, n int32) {
	t.Helper()
	if got := r.n.Load(); got != n {
		t.Errorf("the function has run %d times, want %d", got, n)
	}
}

// gets calls Once, and checks the result.
func gets(t *testing.T, l *core.Locker, r *runs, want int, opts ...core.Option) {
	t.Helper()
	got, err := core.Once(background, l, "k", r.pay, append([]core.Option{core.KeepFor(kept)}, opts...)...)
	if err != nil || got.ID != want {
		t.Errorf("%+v, %v; want %d", got, err, want)
	}
}

// All who call while the function runs get its result at once, and those within KeepFor with one command.
func TestOnceRunsForAllCalls(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		r := runs{took: 25 * time.Second} // no renewal is due then
		began := time.Now()
		var calls sync.WaitGroup
		for i := range 128 {
			calls.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				gets(t, []*core.Locker{a, b}[i%2], &r, 1)
				wantTime(t, "the result", time.Since(began), r.took, r.took+20*time.Millisecond)
			})
		}
		calls.Wait()
		n := 0
		for _, c := range append(s.commands(acquire), s.commands(release)...) {
			if !c.at.Before(began.Add(r.took)) {
				n++
			}
		}
		if n > 3 {
			t.Errorf("%d scripts for the result: one stores it, and one of each process asks for it", n)
		}
		time.Sleep(kept - time.Second)
		before := s.scripts()
		gets(t, b, &r, 1)
		gets(t, a, &r, 1, core.NoWait())
		if n := s.scripts() - before; n != 2 {
			t.Errorf("%d scripts for two calls in the window", n)
		}
		r.want(t, 1)
		time.Sleep(time.Second)
		s.isFree("k")
		gets(t, a, &r, 2)
	})
}

// A call that comes after a question was sent does not get the answer to that: the result may be gone by then.
func TestOnceGetsNoResultOfBefore(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		var r runs
		gets(t, l, &r, 1)
		s.fail(acquire, lateReply(100*time.Millisecond))
		var calls sync.WaitGroup
		calls.Go(func() { gets(t, l, &r, 1) })
		time.Sleep(50 * time.Millisecond)
		s.Del("lock:k")
		calls.Go(func() { gets(t, l, &r, 2) })
		calls.Wait()
	})
}

// Calls for other requests, and such as want the lock itself, go on waiting.
func TestResultIsForNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		r := runs{took: time.Second}
		var first sync.WaitGroup
		for range 2 {
			first.Go(func() { gets(t, l, &r, 1) })
			synctest.Wait()
		}
		attempt, plain := start(background, l, "k", attemptAt(request)), start(background, l, "k")
		first.Wait()
		wantErr(t, (<-attempt).err, adapter.ErrReused)
		waits(t, plain)
		_, err := l.ForceUnlock(background, "k")
		wantErr(t, err)
		o := <-plain
		wantErr(t, o.err)
		unlock(t, o.lock)
	})
}

var errBoom = errors.New("boom")

// opaque has its JSON from methods of its pointer.
type opaque struct{ text string }

func (o *opaque) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(o.text)) }
func (o *opaque) UnmarshalJSON(text []byte) error {
	var content []byte
	err := json.Unmarshal(text, &content)
	o.text = string(content)
	return err
}

// What counts as an error keeps nothing, so that the next call runs as the first.
func TestOnceKeepsNoFailure(t *testing.T) {
	for what, c := range map[string]struct {
		fn      func(ctx context.Context) (any, error)
		want    error
		text    string
		returns bool // the result nevertheless
	}{
		"an error":       {fn: func(context.Context) (any, error) { return "partly", errBoom }, want: errBoom, returns: true},
		"a panic":        {fn: func(context.Context) (any, error) { panic(errBoom) }, text: "panic: boom"},
		"Goexit":         {fn: func(context.Context) (any, error) { runtime.Goexit(); return nil, nil }, text: "gone"},
		"a large result": {fn: func(context.Context) (any, error) { return strings.Repeat("a", 64<<10-1), nil }, want: core.ErrResultTooLarge, returns: true},
		"no JSON":        {fn: func(context.Context) (any, error) { return make(chan int), nil }, text: "core: the result cannot be stored as JSON: json: unsupported type", returns: true},
		"DropWindow": {fn: func(ctx context.Context) (any, error) {
			k, _ := core.FromContextKey(ctx, "k")
			k.DropWindow()
			return "sorry", nil
		}, returns: true},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker(core.KeepFor(kept), core.MaxHold(time.Minute))
				got, err := any(nil), errors.New("gone")
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() {
						if p := recover(); p != nil {
							err = fmt.Errorf("panic: %v", p)
						}
					}()
					got, err = core.Once(background, l, "k", c.fn)
				}()
				<-ended
				if c.want != nil {
					wantErr(t, err, c.want)
				} else if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
					t.Errorf("%v, want %q", err, c.text)
				}
				if (got != nil) != c.returns {
					t.Errorf("the result is %.20v", got)
				}
				s.isFree("k")
				var r runs
				gets(t, l, &r, 1, core.RefuseUnknown())
			})
		})
	}
	bubble(t, func(t *testing.T, s *embedded) { // what has no way back from JSON
		l := s.locker(core.KeepFor(kept))
		got, err := core.Once(background, l, "k", func(context.Context) (error, error) { return errBoom, nil })
		if got != errBoom || err == nil || !strings.Contains(err.Error(), "cannot be stored as JSON") {
			t.Errorf("%v, %v", got, err)
		}
		s.isFree("k")
	})
	bubble(t, func(t *testing.T, s *embedded) { // what comes back as another one
		l := s.locker(core.KeepFor(kept))
		for _, result := range []any{"a\xffb", int64(1<<53 + 1), map[string]any{"n": uint64(1<<64 - 1)}} {
			keepsNot(t, s, l, result)
		}
		for range 2 {
			got, err := core.Once(background, l, "k", func(context.Context) (opaque, error) { return opaque{"a\xffb"}, nil })
			if got.text != "a\xffb" || err != nil {
				t.Errorf("by methods of its pointer: %q, %v", got.text, err)
			}
		}
	})
	bubble(t, func(t *testing.T, s *embedded) { // the longest that is kept
		l := s.locker(core.KeepFor(kept))
		text := strings.Repeat("a", 64<<10-2)
		long := func(context.Context) (string, error) { return text, nil }
		for range 2 {
			if got, err := core.Once(background, l, "k", long); got != text || err != nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		}
	})
}

// Nobody knows what a run has done that lost its lock, or whose process died.
func TestOnceOfUnknownOutcome(t *testing.T) {
	for what, c := range map[string]struct {
		option core.Option
		end    func(s *embedded, l *core.Locker, ctx context.Context)
		want   error
	}{
		"its lease is over": {core.FixedLease(10 * time.Second), func(_ *embedded, _ *core.Locker, ctx context.Context) { <-ctx.Done() }, core.ErrLost},
		"held for too long": {core.MaxHold(10 * time.Second), func(_ *embedded, _ *core.Locker, ctx context.Context) { <-ctx.Done() }, core.ErrMaxHold},
		"closed": {core.Lease(time.Minute), func(_ *embedded, l *core.Locker, ctx context.Context) {
			ended, cancel := context.WithCancel(background)
			cancel()
			wantErr(t, l.Close(ended), context.Canceled)
		}, core.ErrClosed},
		"the answer comes too late": {core.FixedLease(10 * time.Second), func(*embedded, *core.Locker, context.Context) { time.Sleep(11 * time.Second) }, core.ErrLost},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				log := newRequestLog(t)
				l, other := s.open(), s.locker(core.KeepFor(kept), core.Logger(slog.New(log)))
				defer l.Close(background)
				got, err := core.Once(background, l, "k", func(ctx context.Context) (int, error) {
					c.end(s, l, ctx)
					return 42, nil
				}, core.KeepFor(kept), c.option)
				wantErr(t, err, c.want)
				if got != 42 {
					t.Errorf("the result is %d", got)
				}
				time.Sleep(time.Second)
				never := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
				_, err = core.Once(background, other, "k", never, core.RefuseUnknown())
				wantErr(t, err, core.ErrOutcomeUnknown)
				wantNot(t, err, core.ErrNotAcquired, core.ErrUnavailable)
				attempt := 0
				run := func(ctx context.Context) (int, error) { attempt = core.AttemptOf(ctx); return 7, errBoom }
				_, err = core.Once(background, other, "k", run)
				wantErr(t, err, errBoom)
				if lines := log.of("runs again"); attempt != 2 || len(lines) != 1 || lines[0]["key"] != "k" || lines[0]["attempt"] != 2.0 {
					t.Errorf("attempt %d, logged: %v", attempt, lines)
				}
				time.Sleep(kept - 30*time.Second) // an error of the second says nothing of the first
				_, err = core.Once(background, other, "k", never, core.RefuseUnknown())
				wantErr(t, err, core.ErrOutcomeUnknown)
				time.Sleep(time.Minute)
				s.isFree("k")
			})
		})
	}
}

// A result whose storing is not confirmed is the caller's, and stored in the background.
func TestOnceOnABadNetwork(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		var r runs
		s.fail(release, loseReply)
		gets(t, l, &r, 1)
		gets(t, l, &r, 1)
		s.Del("lock:k")
		down := func(ctx context.Context) (receipt, error) {
			s.outage()
			return r.pay(ctx)
		}
		if got, err := core.Once(background, l, "k", down, core.KeepFor(kept)); got.ID != 2 || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		s.heal()
		time.Sleep(2 * time.Second)
		gets(t, l, &r, 2)
	})
}

func TestOnceRefusesResultsOfOthers(t *testing.T) {
	type renamed struct{ Number int }
	wrong := func(t *testing.T, err error) {
		t.Helper()
		if lock := (*core.LockError)(nil); !errors.As(err, &lock) || lock.Key != "k" || strings.Contains(err.Error(), "ID") {
			t.Errorf("%v", err)
		}
		if !strings.Contains(core.Detail(err), `the lock "k"`) {
			t.Error(core.Detail(err))
		}
	}
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(kept))
		var r runs
		gets(t, l, &r, 1)
		wrong(t, read[int](t, l, 0))
		wrong(t, read(t, l, renamed{}))
		wrong(t, read[[]receipt](t, l, nil))
		_, err := core.Once(background, l, "lines", func(context.Context) (receipt, error) { return receipt{1, []string{"a"}}, nil })
		wantErr(t, err)
		part, err := core.Once(background, l, "lines", func(context.Context) (struct{ ID int }, error) { return struct{ ID int }{2}, nil })
		if part.ID != 0 || err == nil {
			t.Errorf("a part of the result is %v, %v", part, err)
		}
		wantErr(t, read(t, l, &receipt{ID: 1}))
		wantErr(t, read[any](t, l, map[string]any{"ID": 1.0}))
	})
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(kept))
		if got, err := core.Once(background, l, "k", func(context.Context) (*receipt, error) { return nil, nil }); got != nil || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		wrong(t, read(t, l, receipt{}))
		wrong(t, read(t, l, ""))
		wrong(t, read(t, l, [1]int{}))
		wantErr(t, read[*receipt](t, l, nil))
		wantErr(t, read[[]int](t, l, nil))
		wantErr(t, read[any](t, l, nil))
		wantErr(t, read(t, l, json.RawMessage("null")))
	})
	bubble(t, func(t *testing.T, s *embedded) {
		answer(t, attempts(t, s.locker(), 1), "paid")
		l := s.locker(core.KeepFor(kept))
		wantErr(t, read(t, l, ""), adapter.ErrReused)
	})
}

// read gets the result that is stored, as another type.
func read[T any](t *testing.T, l *core.Locker, want T) error {
	t.Helper()
	got, err := core.Once(background, l, "k", func(context.Context) (none T, _ error) {
		t.Errorf("the function ran for %T", none)
		return none, nil
	})
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		if a, _ := json.Marshal(got); err != nil || string(a) != jsonOf(want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	return err
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func TestLockOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(core.KeepFor(kept)), s.locker(core.KeepFor(kept))
		if n := core.AttemptOf(background); n != 0 {
			t.Errorf("attempt %d outside", n)
		}
		never := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
		var outlives context.Context
		got, err := core.Once(background, l, "k", func(ctx context.Context) (int, error) {
			k, ok := core.FromContext(ctx)
			if !ok || k.Key() != "k" || k.Token() == 0 || ctx != k.Context() {
				t.Error("its context is not the lock's")
			}
			for _, l := range []*core.Locker{l, other} {
				_, err := core.Once(ctx, l, "k", never)
				wantErr(t, err, core.ErrDeadlock)
				if busy := wantBusy(t, err); !strings.Contains(err.Error(), "would wait for itself") || busy.RetryAfter == 0 {
					t.Error(err)
				}
			}
			elsewhere := newEmbedded(t).locker()
			if n, err := core.Once(ctx, elsewhere, "k", func(context.Context) (int, error) { return 1, nil }, core.KeepFor(kept)); n != 1 || err != nil {
				t.Errorf("in another Redis: %d, %v", n, err)
			}
			outlives = ctx
			time.Sleep(5 * time.Minute) // it is renewed
			inner, err := core.Once(ctx, l, "another", func(ctx context.Context) (int, error) {
				if _, held := core.FromContextKey(ctx, "k"); !held {
					t.Error("the outer lock is not found")
				}
				third := take(t, ctx, l, "third")
				n := core.AttemptOf(third.Context())
				unlock(t, take(t, ctx, l, "k"), third)
				return n, nil
			})
			if n := core.AttemptOf(core.Detach(ctx)); n != 0 {
				t.Errorf("attempt %d when detached", n)
			}
			return inner + 10*core.AttemptOf(ctx), err
		})
		if got != 11 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
		if n := core.AttemptOf(outlives); n != 1 {
			t.Errorf("what has outlived it is of attempt %d", n)
		}
		err = l.Do(background, "plain", func(ctx context.Context) error {
			_, err := core.Once(ctx, l, "plain", never)
			wantErr(t, err, core.ErrDeadlock)
			return errBoom
		})
		wantErr(t, err, errBoom)
	})
}

func TestOnceWaitsAsOthersDo(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(kept))
		k := take(t, background, l, "k", core.KeepFor(time.Hour))
		var r runs
		for _, opt := range []core.Option{core.NoWait(), core.Wait(time.Second)} {
			_, err := core.Once(background, l, "k", r.pay, opt)
			wantBusy(t, err)
		}
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err := core.Once(ctx, l, "k", r.pay)
		wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
		wantErr(t, k.Abort(background))
		gets(t, l, &r, 1)
		_, err = l.TryLock(background, "k")
		if busy := wantBusy(t, err); !busy.Done || busy.RetryAfter != kept {
			t.Errorf("a plain call is busy for %v, done: %v", busy.RetryAfter, busy.Done)
		}
		_, err = core.Once(background, l, "", r.pay)
		wantErr(t, err, core.ErrInvalidKey)
		r.want(t, 1)
	})
}

// What shows locks shows a result.
func TestInspectTellsOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(kept))
		_, err := core.Once(background, l, "k", func(context.Context) (int, error) {
			if info, err := l.Inspect(background, "k"); info.Attempt != 1 || info.Owner == "" || err != nil {
				t.Errorf("%+v, %v", info, err)
			}
			return 1, nil
		})
		wantErr(t, err)
		if info, err := l.Inspect(background, "k"); info.State != core.StateAnswered || info.TTL != kept || info.Owner != "" || err != nil {
			t.Errorf("%+v, %v", info, err)
		}
		if freed, err := l.ForceUnlock(background, "k"); !freed || err != nil {
			t.Errorf("ForceUnlock: %v, %v", freed, err)
		}
		var r runs
		gets(t, l, &r, 1)
	})
}

// What fn has done of which an operator takes the lock nobody knows, until he says that this is to be forgotten.
func TestForceUnlockDoesNotForgetARunOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(kept))
		forces := func() {
			if freed, err := l.ForceUnlock(background, "k"); !freed || err != nil {
				t.Errorf("ForceUnlock: %v, %v", freed, err)
			}
		}
		_, err := core.Once(background, l, "k", func(ctx context.Context) (int, error) {
			forces()
			<-ctx.Done()
			return 1, ctx.Err()
		})
		wantErr(t, err, core.ErrLost)
		for n, opts := range map[int][]core.Option{0: {core.RefuseUnknown()}, 2: nil} {
			_, err = core.Once(background, l, "k", func(ctx context.Context) (int, error) {
				if got := core.AttemptOf(ctx); got != n {
					t.Errorf("it runs as attempt %d, want %d", got, n)
				}
				return 1, errBoom
			}, opts...)
			wantErr(t, err, map[int]error{0: core.ErrOutcomeUnknown, 2: errBoom}[n])
		}
		forces()
		var r runs
		gets(t, l, &r, 1)
	})
}

func TestObserversHearOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := new(ear)
		l := s.locker(core.KeepFor(kept), core.Observe(o), core.Name("receipts"))
		var r runs
		gets(t, l, &r, 1)
		gets(t, l, &r, 1)
		var got []string
		for _, e := range o.events {
			got = append(got, fmt.Sprint(e.Kind, e.Name, e.Form, e.Reason))
		}
		want := fmt.Sprint([]string{
			fmt.Sprint(core.EventWaiting, "receipts", "exclusive", ""), fmt.Sprint(core.EventAcquired, "receipts", "exclusive", ""),
			fmt.Sprint(core.EventReleased, "receipts", "exclusive", ""),
			fmt.Sprint(core.EventWaiting, "receipts", "exclusive", ""), fmt.Sprint(core.EventBusy, "receipts", "exclusive", "answered"),
		})
		if fmt.Sprint(got) != want {
			t.Errorf("%v, want %v", got, want)
		}
		_, err := core.Once(background, l, "u", func(context.Context) (int, error) { time.Sleep(time.Minute); return 0, nil }, core.FixedLease(time.Second))
		wantErr(t, err, core.ErrLost)
		_, err = core.Once(background, l, "u", func(context.Context) (int, error) { return 0, nil }, core.RefuseUnknown())
		wantErr(t, err, core.ErrOutcomeUnknown)
		if last := o.events[len(o.events)-1]; last.Kind != core.EventFailed || last.Reason != "outcome_unknown" {
			t.Errorf("%+v", last)
		}
	})
}

func TestWrapOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, plain := s.locker(core.KeepFor(kept)), s.locker()
		var n atomic.Int32
		byName := func(name string) (string, error) {
			if name == "" {
				return "", errBoom
			}
			return "name=" + name, nil
		}
		greet := func(ctx context.Context, name string) (string, error) {
			return fmt.Sprintf("%s, attempt %d, run %d", name, core.AttemptOf(ctx), n.Add(1)), nil
		}
		greetOnce := core.WrapOnce(l, byName, greet, core.NoWait())
		for _, want := range []string{"a, attempt 1, run 1", "a, attempt 1, run 1", "b, attempt 1, run 2"} {
			if got, err := greetOnce(background, want[:1]); got != want || err != nil {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
		_, err := greetOnce(background, "")
		wantErr(t, err, errBoom)
		for want, wrap := range map[string]func(){
			"one of them is nil":                       func() { core.WrapOnce(nil, byName, greet) },
			"a function to run":                        func() { core.WrapOnce[string, string](l, byName, nil) },
			"a key function":                           func() { core.WrapOnce(l, nil, greet) },
			"Once needs KeepFor":                       func() { core.WrapOnce(plain, byName, greet) },
			"Lease(-1ns)":                              func() { core.WrapOnce(l, byName, greet, core.Lease(-1)) },
			"Owner is for a single call":               func() { core.WrapOnce(l, byName, greet, core.Owner("o")) },
			"BackgroundRelease has no effect":          func() { core.WrapOnce(l, byName, greet, core.BackgroundRelease()) },
			"core: Once needs a Locker and a function": func() { _, _ = core.Once[int](background, l, "k", nil) },
			"to run; one of them is nil":               func() { _, _ = core.Once(background, nil, "k", func(context.Context) (int, error) { return 0, nil }) },
		} {
			func() {
				defer func() {
					if p := fmt.Sprint(recover()); !strings.Contains(p, want) || !strings.HasPrefix(p, "core: ") {
						t.Errorf("panic %q, want %q", p, want)
					}
				}()
				wrap()
			}()
		}
	})
}

func TestOptionsOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quorumOf(t, []*embedded{newEmbedded(t), newEmbedded(t), newEmbedded(t)})
		_, err := core.Once(background, l, "k", func(context.Context) (int, error) { return 1, nil }, core.KeepFor(kept))
		wantMisuse(t, err, "Once and idempotent requests cannot be combined with a Locker of NewQuorum")
	})
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		run := func(context.Context) (int, error) { return 1, nil }
		for want, opts := range map[string][]core.Option{
			"Once needs KeepFor":                   nil,
			"cannot be combined with Shared":       {core.KeepFor(kept), core.Shared()},
			"cannot be combined with Shared, Perm": {core.KeepFor(kept), core.Permits(2)},
			"Permits, Weight, Owner":               {core.KeepFor(kept), core.Weight(2)},
			"Weight, Owner or a ticket":            {core.KeepFor(kept), core.Owner("o")},
			"Owner or a ticket":                    {core.KeepFor(kept), adapter.Ticket("t")},
		} {
			_, err := core.Once(background, l, "k", run, opts...)
			wantMisuse(t, err, want)
		}
		if got, err := core.Once(background, s.locker(core.KeepFor(kept), core.BackgroundRelease()), "k", run); got != 1 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	})
}

package core_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// stuck is a log handler and an Observer that does something else with all that it gets until it goes.
type stuck struct {
	records
	does func()
	mu   sync.Mutex
	goes bool
}

func (s *stuck) act() {
	s.mu.Lock()
	goes := s.goes
	s.mu.Unlock()
	if !goes {
		s.does()
	}
}

func (s *stuck) Handle(ctx context.Context, r slog.Record) error {
	s.act()
	return s.records.Handle(ctx, r)
}

func (s *stuck) Observe(ctx context.Context, e core.Event) context.Context {
	if e.Kind == core.EventLost || e.Kind == core.EventRenewalFailed || e.Kind == core.EventReleased && e.Key == "later" {
		s.act()
	}
	return ctx
}

func (s *stuck) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goes = true
}

// Foreign code holds nothing up (design, invariant 13): renewals, ends of leases and calls go on while a log handler or an Observer
// stands still, panics or ends its goroutine, and Close waits for it within its bound.
func TestForeignCodeHoldsNothingUp(t *testing.T) {
	for what, does := range map[string]func(wakes chan struct{}){
		"blocks": func(wakes chan struct{}) { <-wakes },
		"panics": func(chan struct{}) { panic(errBoom) },
		"exits":  func(chan struct{}) { runtime.Goexit() },
	} {
		for who, options := range map[string]func(*stuck) []core.Option{
			"a log":       func(s *stuck) []core.Option { return []core.Option{core.Logger(slog.New(s))} },
			"an Observer": func(s *stuck) []core.Option { return []core.Option{core.Observe(s)} },
		} {
			t.Run(who+" "+what, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					wakes := make(chan struct{})
					foreign := &stuck{does: func() { does(wakes) }}
					l, other := s.open(append(options(foreign), core.Timeout(time.Second))...), s.locker()
					kept := take(t, background, l, "kept")
					lost := take(t, background, l, "lost")
					wantErr(t, l.Do(background, "later", func(context.Context) error { return nil }, core.BackgroundRelease()))
					time.Sleep(time.Second) // it is released
					s.Del("lock:lost")
					<-lost.Context().Done() // a line, and an event
					s.fail(renew, refuse("LOADING"))
					time.Sleep(5 * time.Minute)
					_, err := other.TryLock(background, "kept")
					wantBusy(t, err)
					ends := take(t, background, l, "ends", core.FixedLease(time.Second))
					time.Sleep(time.Second)
					if ends.Context().Err() == nil {
						t.Error("a lease has not ended")
					}
					unlock(t, kept)
					began := time.Now()
					wantErr(t, l.Close(background))
					wantTime(t, "Close", time.Since(began), 0, 1200*time.Millisecond)
					close(wakes)
				})
			})
		}
	}
}

// A call that gets a lock in memory does not wait for Observers, who hear of the release of the one before it.
func TestAnObserverHoldsUpNoHandOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		wakes := make(chan struct{})
		foreign := &stuck{does: func() { <-wakes }}
		l := s.locker(core.Observe(foreign))
		k := take(t, background, l, "later")
		next := start(background, l, "later")
		time.Sleep(time.Millisecond) // or it is released
		go k.Unlock(background)
		select {
		case got := <-next:
			foreign.release()
			unlock(t, got.lock)
		case <-time.After(time.Minute):
			t.Error("it waits")
		}
		close(wakes)
		if n := len(s.commands(release)); n != 1 {
			t.Errorf("%d releases; the test shows nothing", n)
		}
	})
}

// What a log handler did not write is counted in the next line that it writes.
func TestLinesThatWereNotWrittenAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		wakes := make(chan struct{})
		foreign := &stuck{does: func() { <-wakes }}
		l := s.locker(core.Logger(slog.New(foreign)))
		force := func() {
			k := take(t, background, l, "k")
			_, err := l.ForceUnlock(background, "k")
			wantErr(t, err)
			_ = k.Abort(background)
		}
		for range 300 {
			force()
		}
		foreign.release()
		close(wakes)
		lines := int64(len(foreign.all()))
		force()
		settle()
		foreign.records.mu.Lock()
		defer foreign.records.mu.Unlock()
		unwritten := int64(0)
		for _, line := range foreign.lines {
			line.Attrs(func(a slog.Attr) bool {
				if a.Key == "unwritten_lines" {
					unwritten += a.Value.Int64()
				}
				return true
			})
		}
		if lines != 256 || unwritten < 300-256 {
			t.Errorf("%d lines were written, and %d counted", lines, unwritten)
		}
	})
}

// slowWithLoads is an Observer that stands still when it hears of the load.
type slowWithLoads struct {
	wakes           chan struct{}
	loads, releases atomic.Int32
}

func (s *slowWithLoads) Observe(ctx context.Context, e core.Event) context.Context {
	switch e.Kind {
	case core.EventLoad:
		<-s.wakes
		s.loads.Add(1)
	case core.EventReleased:
		s.releases.Add(1)
	}
	return ctx
}

// It hears of a release by the time that Unlock returns nevertheless.
func TestObserverThatIsSlowWithLoads(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		slow := &slowWithLoads{wakes: make(chan struct{})}
		if unlock(t, take(t, background, s.locker(core.Observe(slow)), "k")); slow.releases.Load() != 1 {
			t.Error("the release was not told")
		}
		close(slow.wakes)
		if time.Sleep(time.Second); slow.loads.Load() == 0 {
			t.Error("no load was told; the test shows nothing")
		}
	})
}

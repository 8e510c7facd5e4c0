//go:build go1.25

package riverlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/adapters/riverlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what goes wrong on purpose
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

const key = "orderID=42"

// newJob is a job about order 42.
func newJob(metadata string) *rivertype.JobRow {
	return &rivertype.JobRow{ID: 7, Kind: "pay", Attempt: 1, EncodedArgs: []byte(`{"orderID":42}`), Metadata: []byte(metadata)}
}

func nothing(context.Context) error { return nil }

// forbidden is a worker that must not run.
func forbidden(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the worker has run")
		return nil
	}
}

// wantSnooze fails the test unless err snoozes a job for at least shortest and at most longest, because of the reason.
func wantSnooze(t *testing.T, err error, shortest, longest time.Duration, reason error) {
	t.Helper()
	var snooze *rivertype.JobSnoozeError
	switch {
	case !errors.As(err, &snooze) || !errors.Is(err, reason):
		t.Errorf("%v; want a snooze because of %v", err, reason)
	case snooze.Duration < shortest || snooze.Duration > longest:
		t.Errorf("snoozed for %v; want %v to %v", snooze.Duration, shortest, longest)
	case strings.Contains(err.Error(), key) || !strings.HasPrefix(err.Error(), "riverlock: the job did not run: "):
		t.Errorf("the text is %q", err)
	}
}

func wantFailure(t *testing.T, err, reason error) {
	t.Helper()
	cancel, snooze := (*rivertype.JobCancelError)(nil), (*rivertype.JobSnoozeError)(nil)
	if errors.As(err, &cancel) || errors.As(err, &snooze) || !errors.Is(err, reason) {
		t.Errorf("%v; want one that fails the job because of %v", err, reason)
	}
}

func TestJobRunsUnderItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		locks := riverlock.With(locker)
		failed := errors.New("failed")
		for want, m := range map[string]rivertype.WorkerMiddleware{
			key:      locks.ByPayload("orderID"),
			"pay:42": locks.ByTemplate("{type}:{payload.orderID}"),
			"pay":    locks.By(func(j keyfunc.Task) (string, error) { return j.Type(), nil }),
		} {
			err := m.Work(t.Context(), newJob("{}"), func(ctx context.Context) error {
				if lock, held := core.FromContext(ctx); !held || lock.Key() != want {
					t.Errorf("it does not run under the lock of %q", want)
				}
				return failed
			})
			if !errors.Is(err, failed) {
				t.Errorf("%v; want the worker's own error", err)
			}
			func() {
				defer func() {
					if r := recover(); r != "a panic" {
						t.Errorf("recovered %v", r)
					}
				}()
				_ = m.Work(t.Context(), newJob("{}"), func(context.Context) error { panic("a panic") })
			}()
			if err := m.Work(t.Context(), newJob("{}"), nothing); err != nil {
				t.Errorf("%v after a panic", err)
			}
		}
	})
}

func TestJobOfABusyKeyIsSnoozed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &refusals{}
		locker := locktest.New(t, core.Observe(refused))
		m := riverlock.With(locker).ByPayload("orderID")
		defer locktest.Hold(t, locker, key)()

		for metadata, d := range map[string]time.Duration{
			"":                   time.Second,
			"{}":                 time.Second,
			`{"snoozes":1}`:      2 * time.Second,
			`{"snoozes":9}`:      10 * time.Second,
			`{"snoozes":1000}`:   30 * time.Second,
			`{"snoozes":-5}`:     time.Second,
			`{"snoozes":"five"}`: time.Second,
		} {
			began := time.Now()
			err := m.Work(t.Context(), newJob(metadata), forbidden(t))
			wantSnooze(t, err, d/2, d*3/2, core.ErrNotAcquired)
			if took := time.Since(began); took < time.Second || took > 1100*time.Millisecond {
				t.Errorf("it has waited for %v; want 1s", took)
			}
		}
		if refused.names[0] != "orderID" || len(refused.names) != 7 {
			t.Errorf("Observers were told of %q", refused.names)
		}
		began := time.Now()
		err := riverlock.With(locker, core.NoWait()).ByPayload("orderID").Work(t.Context(), newJob(""), forbidden(t))
		if wantSnooze(t, err, time.Second/2, time.Second*3/2, core.ErrNotAcquired); time.Since(began) > 100*time.Millisecond {
			t.Errorf("with NoWait it has waited for %v", time.Since(began))
		}

		var jobs sync.WaitGroup
		for range 4 {
			jobs.Go(func() { _ = m.Work(t.Context(), newJob(""), forbidden(t)) })
		}
		synctest.Wait()
		began = time.Now()
		_ = m.Work(t.Context(), newJob(""), forbidden(t))
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the fifth one has waited for %v", took)
		}
		jobs.Wait()
	})
}

type refusals struct {
	mu    sync.Mutex
	names []string
}

func (r *refusals) Observe(ctx context.Context, e core.Event) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == core.EventRefused {
		r.names = append(r.names, e.Name)
	}
	return ctx
}

func TestJobInADedupWindowIsSnoozedUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := riverlock.With(locktest.New(t), core.KeepFor(time.Hour)).ByPayload("orderID")
		if err := m.Work(t.Context(), newJob(""), nothing); err != nil {
			t.Fatal(err)
		}
		err := m.Work(t.Context(), newJob(""), forbidden(t))
		wantSnooze(t, err, time.Hour-2*time.Second, time.Hour, core.ErrNotAcquired)
	})
}

func TestJobWhoseLockIsLostHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		err := riverlock.With(locker).ByPayload("orderID").Work(t.Context(), newJob(""), func(ctx context.Context) error {
			locktest.Lose(t, locker, key)
			<-ctx.Done()
			return nil
		})
		if snooze := (*rivertype.JobSnoozeError)(nil); !errors.Is(err, core.ErrLost) || errors.As(err, &snooze) {
			t.Errorf("%v; want a failure by ErrLost", err)
		}
	})
}

func TestJobWithoutAKeyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := riverlock.With(locktest.New(t))
		wantFailure(t, locks.ByPayload("tenant").Work(t.Context(), newJob(""), forbidden(t)), keyfunc.ErrMissing)
		empty := func(keyfunc.Task) (string, error) { return "", nil }
		wantFailure(t, locks.By(empty).Work(t.Context(), newJob(""), forbidden(t)), core.ErrInvalidKey)

		encrypted := newJob("")
		encrypted.EncodedArgs = []byte(`{"river:encrypted":"c2VjcmV0"}`)
		wantFailure(t, locks.ByPayload("orderID").Work(t.Context(), encrypted, forbidden(t)), keyfunc.ErrMissing)

		ran := false
		err := locks.By(keyfunc.Optional(keyfunc.Payload("tenant"))).Work(t.Context(), newJob(""), func(ctx context.Context) error {
			_, held := core.FromContext(ctx)
			ran = !held
			return nil
		})
		if err != nil || !ran {
			t.Errorf("without a lock on purpose: %v, ran: %v", err, ran)
		}
	})
}

func TestJobWithoutRedisFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)))
		m := riverlock.With(locker).ByPayload("orderID")
		end := locktest.Outage(t, locker)
		err := m.Work(t.Context(), newJob(""), forbidden(t))
		if snooze := (*rivertype.JobSnoozeError)(nil); !errors.Is(err, core.ErrUnavailable) || errors.As(err, &snooze) {
			t.Errorf("%v; want a failure by ErrUnavailable", err)
		}
		end()
		err = riverlock.ByPayload("orderID").Work(t.Context(), newJob(""), forbidden(t))
		if err == nil || !strings.HasPrefix(err.Error(), "riverlock: no Locker") {
			t.Errorf("without a Locker: %v", err)
		}
	})
}

// A job that waits while its client or Locker shuts down has not failed.
func TestShutdownSnoozesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		m := riverlock.With(locker, core.Wait(time.Hour)).ByPayload("orderID")
		release := locktest.Hold(t, locker, key)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		wantSnooze(t, m.Work(ctx, newJob(""), forbidden(t)), time.Second, time.Second, context.Canceled)
		release()

		if err := locker.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSnooze(t, m.Work(t.Context(), newJob(""), forbidden(t)), time.Second, time.Second, core.ErrClosed)
	})
}

func TestSetUpMistakesPanic(t *testing.T) {
	for begins, f := range map[string]func(){
		"keyfunc: Payload":             func() { riverlock.ByPayload("") },
		"riverlock: ByTemplate: ":      func() { riverlock.ByTemplate("{payload}") },
		"riverlock: By needs":          func() { riverlock.By(nil) },
		"riverlock: bad option: Lease": func() { riverlock.ByPayload("orderID", core.Lease(-1)) },
		"riverlock: bad option: Owner": func() { riverlock.With(nil, core.Owner("me")) },
	} {
		func() {
			defer func() {
				text, _ := recover().(string)
				if !strings.HasPrefix(text, begins) {
					t.Errorf("%s: %q", begins, text)
				}
			}()
			f()
		}()
	}
}

var _ rivertype.WorkerMiddleware = riverlock.ByPayload("orderID")

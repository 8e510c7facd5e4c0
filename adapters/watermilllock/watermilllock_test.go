//go:build go1.25

package watermilllock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/adapters/watermilllock"
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

// newMessage is about order 42.
func newMessage() *message.Message {
	m := message.NewMessage("a-uuid", []byte(`{"orderID":42}`))
	m.Metadata.Set("orderID", "42")
	return m
}

func uuidOf(m *message.Message) (string, error) { return m.UUID, nil }

func nothing(*message.Message) ([]*message.Message, error) { return nil, nil }

// forbidden is a handler that must not run.
func forbidden(t *testing.T) message.HandlerFunc {
	return func(*message.Message) ([]*message.Message, error) {
		t.Error("the handler has run")
		return nil, nil
	}
}

// wantNotRun fails the test unless err says that the handler has not run because of the reason, after a time.
func wantNotRun(t *testing.T, handle message.HandlerFunc, m *message.Message, after time.Duration, reason error) {
	t.Helper()
	began := time.Now()
	_, err := handle(m)
	if !errors.Is(err, watermilllock.ErrNotRun) || !errors.Is(err, reason) {
		t.Errorf("%v; want ErrNotRun because of %v", err, reason)
		return
	}
	if took := time.Since(began); took < after || took > after+500*time.Millisecond {
		t.Errorf("%v after %v; want %v", err, took, after)
	}
	if strings.Contains(err.Error(), key) || !strings.HasPrefix(err.Error(), "watermilllock: the handler did not run: ") {
		t.Errorf("the text is %q", err)
	}
}

func TestHandlerRunsUnderItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := watermilllock.With(locktest.New(t))
		failed := errors.New("failed")
		for name, m := range map[string]struct {
			key        string
			middleware message.HandlerMiddleware
		}{
			"ByPayload":  {key, locks.ByPayload("orderID")},
			"ByTemplate": {"order:42", locks.ByTemplate("order:{payload.orderID}")},
			"ByMetadata": {key, locks.ByMetadata("orderID")},
			"By":         {key, locks.By(keyfunc.Int(keyfunc.Payload("orderID")))},
			"ByMessage":  {"message=a-uuid", locks.ByMessage(keyfunc.Named("message", uuidOf))},
		} {
			t.Log(name)
			type own struct{}
			outer := context.WithValue(t.Context(), own{}, "mine")
			msg := newMessage()
			msg.SetContext(outer)
			produced, err := m.middleware(func(msg *message.Message) ([]*message.Message, error) {
				if lock, held := core.FromContext(msg.Context()); !held || lock.Key() != m.key || msg.Context().Value(own{}) != "mine" {
					t.Errorf("it does not run under the lock of %q", m.key)
				}
				return []*message.Message{newMessage()}, nil
			})(msg)
			if err != nil || len(produced) != 1 || msg.Context() != outer {
				t.Errorf("%v, %d messages, its own context is back: %v", err, len(produced), msg.Context() == outer)
			}

			produced, err = m.middleware(func(*message.Message) ([]*message.Message, error) {
				return []*message.Message{newMessage()}, failed
			})(msg)
			if !errors.Is(err, failed) || len(produced) != 0 {
				t.Errorf("%v and %d messages; want the handler's own error", err, len(produced))
			}
			func() {
				defer func() {
					if r := recover(); r != "a panic" || msg.Context() != outer {
						t.Errorf("recovered %v, its own context is back: %v", r, msg.Context() == outer)
					}
				}()
				_, _ = m.middleware(func(*message.Message) ([]*message.Message, error) { panic("a panic") })(msg)
			}()
			if _, err := m.middleware(nothing)(msg); err != nil {
				t.Errorf("%v after a panic", err)
			}
		}
	})
}

func TestMessageOfABusyKeyWaitsAndIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &refusals{}
		locker := locktest.New(t, core.Observe(refused))
		locks := watermilllock.With(locker)
		release := locktest.Hold(t, locker, key)
		wantNotRun(t, locks.ByPayload("orderID")(forbidden(t)), newMessage(), 5*time.Second, core.ErrNotAcquired)
		wantNotRun(t, locks.ByMetadata("orderID", core.NoWait())(forbidden(t)), newMessage(), time.Second, core.ErrNotAcquired)
		named := watermilllock.With(locker, core.Name("payments"), core.Wait(time.Second))
		wantNotRun(t, named.ByPayload("orderID")(forbidden(t)), newMessage(), time.Second, core.ErrNotAcquired)
		if got := strings.Join(refused.names, " "); got != "orderID orderID payments" {
			t.Errorf("Observers were told of %q", got)
		}
		time.AfterFunc(time.Second, release)
		if _, err := locks.ByPayload("orderID")(nothing)(newMessage()); err != nil {
			t.Errorf("%v, although the key was free in time", err)
		}
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

func TestHandlerWhoseLockIsLostHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		produced, err := watermilllock.With(locker).ByPayload("orderID")(func(m *message.Message) ([]*message.Message, error) {
			locktest.Lose(t, locker, key)
			<-m.Context().Done()
			return []*message.Message{newMessage()}, nil
		})(newMessage())
		if !errors.Is(err, core.ErrLost) || errors.Is(err, watermilllock.ErrNotRun) || len(produced) != 0 {
			t.Errorf("%v and %d messages; want ErrLost", err, len(produced))
		}
	})
}

func TestMessageWithoutAKeyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := watermilllock.With(locktest.New(t))
		empty := func(*message.Message) (string, error) { return "", nil }
		for _, c := range []struct {
			middleware message.HandlerMiddleware
			reason     error
		}{
			{locks.ByPayload("tenant"), keyfunc.ErrMissing},
			{locks.ByMetadata("tenant"), keyfunc.ErrMissing},
			{locks.ByMessage(empty), core.ErrInvalidKey},
		} {
			began := time.Now()
			_, err := c.middleware(forbidden(t))(newMessage())
			if !errors.Is(err, c.reason) || errors.Is(err, watermilllock.ErrNotRun) || !strings.HasPrefix(err.Error(), "watermilllock: ") {
				t.Errorf("%v; want %v, and not ErrNotRun", err, c.reason)
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("%v after %v", err, took)
			}
		}
		ran := false
		_, err := locks.By(keyfunc.Optional(keyfunc.Payload("tenant")))(func(m *message.Message) ([]*message.Message, error) {
			_, held := core.FromContext(m.Context())
			ran = !held
			return nil, nil
		})(newMessage())
		if err != nil || !ran {
			t.Errorf("without a lock on purpose: %v, ran: %v", err, ran)
		}
	})
}

// A message that cannot wait for its lock is held for a second.
func TestMessageThatCannotWaitIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)), core.Timeout(time.Second))
		handle := watermilllock.With(locker).ByPayload("orderID")(forbidden(t))
		wantNotRun(t, watermilllock.ByPayload("orderID")(forbidden(t)), newMessage(), time.Second, watermilllock.ErrNotRun)

		release := locktest.Hold(t, locker, key)
		m := newMessage()
		ctx, cancel := context.WithCancel(t.Context())
		m.SetContext(ctx)
		time.AfterFunc(2*time.Second, cancel)
		wantNotRun(t, handle, m, 2*time.Second, context.Canceled)
		release()

		end := locktest.Outage(t, locker)
		began := time.Now()
		if _, err := handle(newMessage()); !errors.Is(err, core.ErrUnavailable) || time.Since(began) < time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		end()
		if err := locker.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantNotRun(t, handle, newMessage(), time.Second, core.ErrClosed)
		wantNotRun(t, handle, m, 0, watermilllock.ErrNotRun) // its context is over
	})
}

func TestSetUpMistakesPanic(t *testing.T) {
	for begins, f := range map[string]func(){
		"keyfunc: Payload":                 func() { watermilllock.ByPayload("") },
		"keyfunc: Named":                   func() { watermilllock.ByMetadata("") },
		"watermilllock: ByTemplate: ":      func() { watermilllock.ByTemplate("{payload}") },
		"watermilllock: By needs":          func() { watermilllock.By(nil) },
		"watermilllock: ByMessage needs":   func() { watermilllock.ByMessage(nil) },
		"watermilllock: bad option: Lease": func() { watermilllock.ByPayload("orderID", core.Lease(-1)) },
		"watermilllock: bad option: Owner": func() { watermilllock.With(nil, core.Owner("me")) },
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

// A message that is refused at once is held all the same: a broker that brings it back at once would have a processor busy.
func TestNoTightLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)))
		defer locktest.Hold(t, locker, key)()
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		waits.Go(func() { _, _ = locker.Lock(ctx, key) })
		defer waits.Wait()
		defer cancel()
		time.Sleep(100 * time.Millisecond)
		long := newMessage()
		long.Metadata.Set("orderID", strings.Repeat("4", 2000))
		nameless := message.NewMessage("a-uuid", []byte(`{`))
		for name, c := range map[string]struct {
			of message.HandlerMiddleware
			m  *message.Message
		}{
			"NoWait":       {watermilllock.With(locker, core.NoWait()).ByPayload("orderID"), newMessage()},
			"MaxWaiters":   {watermilllock.With(locker, core.MaxWaiters(1)).ByPayload("orderID"), newMessage()},
			"no key":       {watermilllock.With(locker).ByPayload("orderID"), nameless},
			"too long key": {watermilllock.With(locker).ByMetadata("orderID"), long},
		} {
			began := time.Now()
			if _, err := c.of(forbidden(t))(c.m); err == nil || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		}
	})
}

package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

const secretKey, secretError = "patient:ann", "NOPERM the user at 10.0.0.7 may not"

// endedLocks are all ways in which a call fails or a hold ends.
var endedLocks = map[string]struct {
	kind error
	end  func(t *testing.T, s *embedded) error
	more string // what the log needs
}{
	"busy": {core.ErrNotAcquired, func(t *testing.T, s *embedded) error {
		defer unlock(t, take(t, background, s.locker(), secretKey))
		_, err := s.locker().TryLock(background, secretKey)
		return err
	}, "somebody else holds it"},
	"wait over": {core.ErrNotAcquired, func(t *testing.T, s *embedded) error {
		defer unlock(t, take(t, background, s.locker(), secretKey))
		_, err := s.locker().Lock(background, secretKey, core.Wait(time.Second))
		return err
	}, "the wait of 1s is over"},
	"caller has left": {context.Canceled, func(t *testing.T, s *embedded) error {
		ctx, cancel := context.WithCancelCause(background)
		cancel(errors.New(secretError))
		_, err := s.locker().Lock(ctx, secretKey)
		return err
	}, "context canceled: " + secretError},
	"caller has left, inspecting": {context.Canceled, func(t *testing.T, s *embedded) error {
		ctx, cancel := context.WithCancelCause(background)
		cancel(errors.New(secretError))
		_, err := s.locker().ForceUnlock(ctx, secretKey)
		return err
	}, secretError},
	"redis refuses": {core.ErrUnavailable, func(t *testing.T, s *embedded) error {
		s.failAll(refuse(secretError), acquire)
		_, err := s.locker().Lock(background, secretKey)
		return err
	}, secretError},
	"redis is down": {core.ErrUnavailable, func(t *testing.T, s *embedded) error {
		l := s.locker()
		s.outage()
		defer s.heal()
		_, err := l.Inspect(background, secretKey)
		return err
	}, "inspecting"},
	"release unconfirmed": {core.ErrUnavailable, func(t *testing.T, s *embedded) error {
		k := take(t, background, s.locker(), secretKey)
		s.failAll(refuse(secretError), release)
		defer s.heal()
		return k.Unlock(background)
	}, secretError},
	"deleted": {core.ErrLost, causeOf(func(s *embedded, l *core.Locker, _ *core.Lock) {
		_, _ = l.ForceUnlock(background, secretKey)
	}), "it was deleted"},
	"expired": {core.ErrLost, causeOf(func(s *embedded, _ *core.Locker, _ *core.Lock) {
		s.outage()
	}), "it could not be renewed in time"},
	"fixed lease": {core.ErrLost, causeOf(func(*embedded, *core.Locker, *core.Lock) {}, core.FixedLease(time.Second)), "its fixed lease is over"},
	"MaxHold":     {core.ErrMaxHold, causeOf(func(*embedded, *core.Locker, *core.Lock) {}, core.MaxHold(time.Second)), "held for too long"},
	"closed": {core.ErrClosed, causeOf(func(_ *embedded, l *core.Locker, _ *core.Lock) {
		ctx, cancel := context.WithCancel(background)
		cancel()
		_ = l.Close(ctx)
	}), "locker closed"},
	"unlocked": {core.ErrNotHeld, func(t *testing.T, s *embedded) error {
		k := take(t, background, s.locker(), secretKey)
		unlock(t, k)
		return k.Unlock(background)
	}, "unlocked before"},
}

// causeOf is why the context of a lock ends.
func causeOf(end func(*embedded, *core.Locker, *core.Lock), opts ...core.Option) func(*testing.T, *embedded) error {
	return func(t *testing.T, s *embedded) error {
		l := s.open()
		k := take(t, background, l, secretKey, opts...)
		end(s, l, k)
		_, cause := endOf(k.Context())
		s.heal()
		_ = k.Unlock(background)
		_ = l.Close(background)
		return cause
	}
}

// A program shows errors to clients, directly or by net/http, which returns the cause of a
// context: neither key nor owner, address or error of Redis is in the text. The log has all.
func TestErrorsTellClientsNothing(t *testing.T) {
	for name, c := range endedLocks {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				err := c.end(t, s)
				wantErr(t, err, c.kind)
				if body, _ := json.Marshal(map[string]any{"error": err}); strings.Contains(string(body), "ann") {
					t.Errorf("the key is in %s", body)
				}
				for _, secret := range []string{secretKey, "ann", "10.0.0.7", "NOPERM", "redis.test", "dial", "EOF"} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%q is in %q", secret, err)
					}
				}
				if !strings.HasPrefix(err.Error(), "core: ") {
					t.Errorf("error %q does not begin with core: ", err)
				}

				var busy *core.BusyError
				var other *core.LockError
				switch {
				case errors.As(err, &busy) && busy.Key == secretKey:
				case errors.As(err, &other) && other.Key == secretKey:
				default:
					t.Errorf("no field has the key: %#v", err)
				}
				var log bytes.Buffer
				slog.New(slog.NewTextHandler(&log, nil)).Error("x", "error", err)
				for what, text := range map[string]string{
					"Detail": core.Detail(err), "slog": log.String(),
					"of a wrapped one": core.Detail(fmt.Errorf("paying: %w", err)),
					"of a joined one":  core.Detail(errors.Join(io.EOF, err)),
				} {
					if !strings.Contains(text, secretKey) || !strings.Contains(text, c.more) {
						t.Errorf("%s: %q; want %q and %q in it", what, text, secretKey, c.more)
					}
				}
			})
		})
	}
}

func TestDetailOfOtherErrors(t *testing.T) {
	busy := &core.BusyError{Key: "k", RetryAfter: time.Second}
	const ofBusy = `core: lock "k" not acquired: somebody else holds it`
	for want, err := range map[string]error{
		"":                          nil,
		"EOF":                       io.EOF,
		"a: EOF":                    fmt.Errorf("a: %w", io.EOF),
		"EOF\nunexpected EOF":       errors.Join(io.EOF, io.ErrUnexpectedEOF),
		"paying: " + ofBusy + ", x": fmt.Errorf("paying: %w, x", busy),
		"refused: " + ofBusy:        hides{busy},
	} {
		if got := core.Detail(err); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// hides is an error that keeps the text of its cause to itself.
type hides struct{ cause error }

func (h hides) Error() string { return "refused" }
func (h hides) Unwrap() error { return h.cause }

// What a handler gets from net/http when its lock is lost during a request to a backend.
func TestLossDuringARequestToABackend(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, secretKey)
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }() // a backend that never answers
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}
		request, err := http.NewRequestWithContext(k.Context(), http.MethodGet, "http://backend/pay", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { _, _ = l.ForceUnlock(background, secretKey) })
		_, err = (&http.Client{Transport: transport}).Do(request)
		wantErr(t, err, core.ErrLost)
		if strings.Contains(err.Error(), secretKey) || !strings.Contains(err.Error(), "core: lock lost") {
			t.Errorf("a client may see: %v", err)
		}
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

//go:build go1.25

package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

type requestKey struct{}

// requestLog is a log in JSON with the request that the context is of, as handlers for request and trace IDs write it.
type requestLog struct {
	slog.Handler
	t *testing.T

	mu    sync.Mutex
	lines []map[string]any
}

func newRequestLog(t *testing.T) *requestLog {
	h := &requestLog{t: t}
	h.Handler = slog.NewJSONHandler(h, nil)
	return h
}

func (h *requestLog) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Err() != nil {
		h.t.Errorf("%s: the context has ended", r.Message)
	}
	r.AddAttrs(slog.Any("request", ctx.Value(requestKey{})))
	return h.Handler.Handle(ctx, r)
}

func (h *requestLog) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var line map[string]any
	err := json.Unmarshal(p, &line)
	h.lines = append(h.lines, line)
	return len(p), err
}

// of are the lines of which the message has a part.
func (h *requestLog) of(part string) (lines []map[string]any) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines {
		if strings.Contains(line["msg"].(string), part) {
			lines = append(lines, line)
		}
	}
	return lines
}

// keys are all keys that lines name.
func keys(lines []map[string]any) (keys []string) {
	for _, line := range lines {
		keys = append(keys, line["key"].(string))
		if omitted, has := line["omitted_keys"]; has {
			for _, key := range omitted.([]any) {
				keys = append(keys, key.(string))
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// Of many locks that are lost at once the log has every key, although nothing follows.
func TestEveryLossIsToldWithItsKey(t *testing.T) {
	const losses = 20
	for when, end := range map[string]func(l *core.Locker){
		"within a second": func(*core.Locker) { time.Sleep(time.Second) },
		"closed before": func(l *core.Locker) {
			if err := l.Close(background); err != nil {
				panic(err)
			}
		},
	} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := newRequestLog(t)
				l := locktest.New(t, core.Logger(slog.New(log)))
				var want []string
				for i := range losses {
					key := fmt.Sprintf("order:%02d", i)
					take(t, background, l, key)
					want = append(want, key)
				}
				for _, key := range want {
					locktest.Lose(t, l, key)
				}
				end(l)
				lines := log.of("a lock was lost while held")
				if got := keys(lines); len(lines) != 2 || !slices.Equal(got, want) || lines[1]["omitted"] != float64(losses-2) {
					t.Errorf("%d lines, with the keys %q: %v", len(lines), got, lines)
				}
				time.Sleep(time.Minute)
				if n := len(log.of("lost")); n != 2 {
					t.Errorf("%d lines in the end", n)
				}
			})
		})
	}
}

// The line of a loss has the word by which metrics count it.
func TestALossIsLoggedWithItsReason(t *testing.T) {
	for reason, c := range map[string]struct {
		option core.Option
		lose   func(l *core.Locker, s *embedded)
	}{
		"deleted":  {core.MaxWaiters(1), func(_ *core.Locker, s *embedded) { s.Del("lock:k") }},
		"expired":  {core.FixedLease(time.Second), func(*core.Locker, *embedded) {}},
		"max_hold": {core.MaxHold(time.Second), func(*core.Locker, *embedded) {}},
		"closed":   {core.MaxWaiters(1), func(l *core.Locker, _ *embedded) { _ = l.Close(within(time.Second)) }},
	} {
		t.Run(reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				log := newRequestLog(t)
				l := s.open(core.Logger(slog.New(log)))
				k := take(t, background, l, "k", c.option)
				c.lose(l, s)
				time.Sleep(2 * time.Minute)
				lines := log.of("a lock was lost while held")
				if len(lines) != 1 || lines[0]["reason"] != reason || lines[0]["owner"] != k.Owner() || lines[0]["for"] == nil {
					t.Errorf("logged: %v", lines)
				}
				_ = l.Close(background)
			})
		})
	}
}

// leadAndLose leads, and goes on for a while after a loss.
func leadAndLose(t *testing.T, ctx context.Context, l *core.Locker, s *embedded, after time.Duration) {
	terms := 0
	wantErr(t, l.Lead(ctx, "k", func(ctx context.Context) error {
		if terms++; terms == 1 {
			s.Del("lock:k")
			<-ctx.Done()
			time.Sleep(after)
		}
		return nil
	}))
}

// Each line is logged with the values of the context of its call, although that has ended.
func TestLinesBelongToTheirRequests(t *testing.T) {
	for line, bring := range map[string]func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded){
		"a lock was lost while held": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			take(t, ctx, l, "k")
			s.Del("lock:k")
		},
		"a lock was lost while held, by Unlock": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			k := take(t, ctx, l, "k")
			s.Del("lock:k")
			wantErr(t, k.Unlock(background), core.ErrLost)
		},
		"a lock was lost while held, by Close": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			take(t, ctx, l, "k")
			wantErr(t, l.Close(within(time.Second)), context.DeadlineExceeded)
		},
		"a lock was lost while held, of several": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			_, err := l.LockAll(ctx, []string{"k", "j"})
			wantErr(t, err)
			s.Del("lock:k")
		},
		"a lock is held longer than MaxHold permits": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			take(t, ctx, l, "k", core.MaxHold(time.Second))
		},
		"a renewal failed and is repeated": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			s.fail(renew, refuse("OOM"))
			take(t, ctx, l, "k")
		},
		"a release failed after the work was done": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			s.fail(release, refuse("OOM"))
			wantErr(t, l.Do(ctx, "k", nothing))
		},
		"a release failed after the work was done, of several": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			s.failAll(refuse("OOM"), "free_all", release)
			wantErr(t, l.DoAll(ctx, []string{"k", "j"}, nothing))
		},
		"a release failed after the work was done, in the background": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			s.fail(release, refuse("OOM"))
			wantErr(t, l.Do(ctx, "k", nothing, core.BackgroundRelease()))
		},
		"giving back a lock failed and is repeated, that Unlock has left": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			s.failAll(refuse("OOM"), release)
			wantErr(t, take(t, ctx, l, "k").Unlock(background), core.ErrUnavailable)
		},
		"giving back a lock failed and is repeated, that was perhaps taken": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			s.fail(acquire, hang)
			s.failAll(refuse("OOM"), release)
			_, err := l.TryLock(ctx, "k")
			wantErr(t, err, core.ErrUnavailable)
		},
		"giving back a lock failed and is repeated, of a call that has waited": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			held := take(t, background, s.locker(), "k")
			t.Cleanup(func() { unlock(t, held) })
			s.failAll(refuse("OOM"), release)
			_, err := l.Lock(ctx, "k", core.Wait(2*time.Second))
			wantBusy(t, err)
		},
		"giving back a lock failed and is repeated, that was lost": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			take(t, ctx, l, "k")
			s.failAll(refuse("OOM"), renew, release)
		},
		"giving back a lock failed and is repeated, that was being handed over": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			k := take(t, ctx, l, "k")
			s.failAll(hang, "hand_over")
			_, err := k.Handover(ctx, time.Minute)
			wantErr(t, err, core.ErrUnavailable)
		},
		"calls wait for one another in a circle": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			a, b := take(t, background, l, "a"), take(t, ctx, l, "b")
			forB := start(a.Context(), l, "b")
			synctest.Wait()
			_, err := l.Lock(b.Context(), "a")
			wantDeadlock(t, err, "a", "b")
			unlock(t, b)
			unlock(t, (<-forB).lock)
		},
		"while its context holds others": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			busy := take(t, background, s.locker(), "busy")
			t.Cleanup(func() { unlock(t, busy) })
			_, err := l.Lock(take(t, ctx, l, "k").Context(), "busy", core.Wait(6*time.Second))
			wantBusy(t, err)
		},
		"freed by ForceUnlock": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			take(t, background, l, "k")
			_, err := l.ForceUnlock(ctx, "k")
			wantErr(t, err)
		},
		"an Observer panicked": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			unlock(t, take(t, ctx, l, "panic"))
		},
		"leadership has ended": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			leadAndLose(t, ctx, l, s, 0)
		},
		"another may lead": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			leadAndLose(t, ctx, l, s, 10*time.Second)
		},
		"a campaign for leadership has failed": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			s.fail(acquire, refuse("OOM"))
			wantErr(t, l.Lead(ctx, "k", nothing))
		},
		"closed before Redis confirmed all releases": func(t *testing.T, ctx context.Context, l *core.Locker, s *embedded) {
			take(t, background, l, "k")
			s.failAll(hang, release)
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			wantErr(t, l.Close(ctx), context.DeadlineExceeded)
		},
	} {
		t.Run(line, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				log := newRequestLog(t)
				ctx, cancel := context.WithCancel(context.WithValue(background, requestKey{}, "r42"))
				panics := &ear{act: func(ctx context.Context, e core.Event) context.Context {
					if e.Key == "panic" {
						panic("oh no")
					}
					return ctx
				}}
				l := s.open(core.Logger(slog.New(log)), core.Observe(panics))
				bring(t, ctx, l, s)
				cancel()
				time.Sleep(time.Minute)
				s.heal()
				_ = l.Close(within(time.Second)) // what is held has been told of, or is yet
				part, _, _ := strings.Cut(line, ",")
				lines := log.of(part)
				if len(lines) == 0 || lines[0]["request"] != "r42" {
					t.Errorf("logged: %v, and else %v", lines, log.of(""))
				}
			})
		})
	}
}

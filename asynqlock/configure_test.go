//go:build go1.25

package asynqlock_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// The functions that were there are asked about what is no refusal, and both settings count as made.
func TestConfigureKeepsWhatIsThere(t *testing.T) {
	log := captureLog(t)
	asynqlock.ForgetSettings()
	harmless := errors.New("harmless")
	config := asynq.Config{
		IsFailure:                func(err error) bool { return !errors.Is(err, harmless) },
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return time.Hour },
		DelayedTaskCheckInterval: time.Minute,
	}
	asynqlock.Configure(&config)
	if config.IsFailure(harmless) || !config.IsFailure(errors.New("no money")) {
		t.Error("the function that says what is a failure was not asked")
	}
	if d := config.RetryDelayFunc(0, harmless, nil); d != time.Hour {
		t.Errorf("retried after %v", d)
	}
	if config.DelayedTaskCheckInterval != time.Minute || config.TaskCheckInterval != 100*time.Millisecond {
		t.Errorf("it checks each %v and %v", config.DelayedTaskCheckInterval, config.TaskCheckInterval)
	}
	locker := locktest.New(t)
	release := hold(t, locker, "order_id=42")
	defer release()
	guard := asynqlock.ByPayload("order_id", asynqlock.Locker(locker), core.NoWait())
	err := guard(forbidden(t)).ProcessTask(taskContext(t, "my-id", 25), order("42"))
	wantErr(t, err, core.ErrNotAcquired)
	if config.IsFailure(err) || config.RetryDelayFunc(0, err, nil) > time.Second || log.String() != "" {
		t.Errorf("a refusal is a failure, comes back late, or is warned of: %s", log)
	}
}

func TestLockerOptionThatIsNil(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "the Locker is nil") {
			t.Errorf("panic: %q", text)
		}
	}()
	asynqlock.ByPayload("order_id", asynqlock.Locker(nil))
}

// Without the settings no task fails for good, but most are done minutes late.
func TestForgottenSettingsAreWarnedOf(t *testing.T) {
	forget := func(c *asynq.Config) {
		asynqlock.ForgetSettings()
		c.IsFailure, c.RetryDelayFunc = nil, nil
	}
	for name, c := range map[string]struct {
		configure func(*asynq.Config)
		policy    asynqlock.BusyPolicy
		want      string
	}{
		"both made": {configure: func(*asynq.Config) {}},
		"none": {
			configure: forget,
			want:      "missing=\"[IsFailure: asynqlock.IsFailure(nil) RetryDelayFunc: asynqlock.RetryDelay(nil)]\"",
		},
		"IsFailure only": {
			configure: func(c *asynq.Config) { forget(c); c.IsFailure = asynqlock.IsFailure(nil) },
			want:      "missing=\"[RetryDelayFunc: asynqlock.RetryDelay(nil)]\"",
		},
		"RetryDelay only": {
			configure: func(c *asynq.Config) { forget(c); c.RetryDelayFunc = asynqlock.RetryDelay(nil) },
			want:      "missing=\"[IsFailure: asynqlock.IsFailure(nil)]\"",
		},
		"revoked, which needs neither": {configure: forget, policy: asynqlock.Drop},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(captured)
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				locker := b.locker()
				release := hold(t, locker, "order_id=42")
				defer release()
				mux := asynq.NewServeMux()
				mux.Use(asynqlock.New(asynqlock.Config{
					Locker: b.locker(core.Logger(log.logger())), Key: keyfunc.Payload("order_id"), OnBusy: c.policy, Options: []core.Option{core.NoWait()},
				}))
				mux.Handle("order:pay", forbidden(t))
				b.start(4, mux, c.configure)
				for range 3 {
					b.enqueue(order("42"))
				}
				time.Sleep(time.Minute)
			})
			switch lines := strings.Count(log.String(), "\n"); {
			case c.want == "" && lines > 0:
				t.Errorf("logged:\n%s", log)
			case c.want != "" && (lines != 1 || !strings.Contains(log.String(), c.want)):
				t.Errorf("logged:\n%s\nwant one line with %s", log, c.want)
			}
		})
	}
}

// In a user's own test no server is there to have settings.
func TestSettingsAreNotMissedOutsideOfAServer(t *testing.T) {
	log := captureLog(t)
	asynqlock.ForgetSettings()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		release := hold(t, b.locker(), "order_id=42")
		defer release()
		if err := by(b.locker())(forbidden(t)).ProcessTask(background, order("42")); err == nil {
			t.Error("no error, although the key is busy")
		}
	})
	if log.String() != "" {
		t.Errorf("logged:\n%s", log)
	}
}

// captured is a log that several goroutines write to.
type captured struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *captured) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *captured) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func (c *captured) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// captureLog returns what the default logger is told until the end of the test.
func captureLog(t *testing.T) *captured {
	t.Helper()
	log, before := new(captured), slog.Default()
	slog.SetDefault(log.logger())
	t.Cleanup(func() { slog.SetDefault(before) })
	return log
}

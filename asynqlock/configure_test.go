package asynqlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
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
		t.Errorf("it looks each %v and %v", config.DelayedTaskCheckInterval, config.TaskCheckInterval)
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

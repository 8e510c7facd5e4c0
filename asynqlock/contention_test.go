//go:build go1.25

package asynqlock_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// The log says which task has waited, and for whom, or which was dropped.
func TestTheLogSaysWhoIsInTheWay(t *testing.T) {
	ctx := taskContext(t, "my-id", 25)
	for policy, kind := range map[asynqlock.BusyPolicy]string{
		asynqlock.Retry: "latchkey: a task has waited for its lock in vain", asynqlock.Drop: "latchkey: a task was dropped because its key is busy",
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			locker := locktest.New(t, core.Describe("shop-eu-3"), core.Logger(slog.New(slog.NewJSONHandler(&log, nil))))
			locktest.Hold(t, locker, "order_id=42")
			if policy == asynqlock.Drop { // which does not wait
				time.Sleep(time.Second)
			}
			guard := asynqlock.New(asynqlock.Config{Locker: locker, Key: keyfunc.Payload("order_id"), OnBusy: policy})
			wantErr(t, guard(forbidden(t)).ProcessTask(ctx, order("42")), core.ErrNotAcquired)
			synctest.Wait()

			var lines []map[string]any
			for text := range strings.Lines(log.String()) {
				var line map[string]any
				if err := json.Unmarshal([]byte(text), &line); err != nil {
					t.Error(err)
				}
				if strings.Contains(text, "latchkey: a task ") && !strings.Contains(text, "has not been told") {
					lines = append(lines, line)
				}
			}
			if len(lines) != 1 || lines[0]["msg"] != kind {
				t.Fatalf("%d lines, want one that %s: %s", len(lines), kind, &log)
			}
			for _, line := range lines {
				for name, want := range map[string]any{
					"key": "order_id=42", "type": "order:pay", "task": "my-id", "state": "held", "for": float64(time.Second), "waiting": 0.0,
				} {
					if line[name] != want {
						t.Errorf("%s is %v; want %v", name, line[name], want)
					}
				}
				if holder, _ := line["holder"].(string); !strings.HasPrefix(holder, "shop-eu-3 (") {
					t.Errorf("held by %v", line["holder"])
				}
			}
		})
	}
}

// The task that waits with KeepOne does so for its turn, and not in vain: the log is silent, and Observers hear of no refusal, however
// often it comes. One that asynq archives afterwards has waited in vain.
func TestKeepOneDoesNotWaitInVain(t *testing.T) {
	var log bytes.Buffer
	var refused []string
	observe := core.Observe(hears(func(e core.Event) {
		if e.Kind == core.EventRefused {
			refused = append(refused, e.Name+" "+e.Reason)
		}
	}))
	keepers(t, func(t *testing.T, k *keeper) {
		k.withLocker([]core.Option{observe, core.Logger(slog.New(slog.NewJSONHandler(&log, nil)))})
		release := k.hold("order_id=42")
		says := func(wantLines int, wantRefused ...string) {
			t.Helper()
			synctest.Wait()
			if n := strings.Count(log.String(), "latchkey: a task has waited for its lock in vain"); n != wantLines || !slices.Equal(refused, wantRefused) {
				t.Errorf("%d lines and refusals %q, want %d and %q", n, refused, wantLines, wantRefused)
			}
			log.Reset()
			refused = nil
		}
		for range 3 {
			time.Sleep(2 * time.Second)
			k.comesAgain("first")
		}
		says(0)
		k.dropped("second")
		synctest.Wait()
		if n := strings.Count(log.String(), "latchkey: a task was dropped because its key is busy"); n != 1 {
			t.Errorf("%d dropped: %s", n, &log)
		}
		says(0, "order_id dropped")
		release()
		k.runs("first", func() { k.comesAgain("last") })
		says(1, "order_id wait_over")
		release = k.hold("order_id=42", core.KeepFor(time.Hour))
		release()
		k.comesAgain("first")
		k.comesAgain("first")
		says(0)
	})
}

// A key that is there and cannot be used is not said to be missing. The error names the part, and not its value.
func TestAKeyThatCannotBeUsed(t *testing.T) {
	for payload, want := range map[string]string{
		`{}`:                      `asynqlock: no key for a task of type "order:pay": skip retry for the task: keyfunc: payload field "order_id": missing`,
		`{"order_id":["s3cret"]}`: `asynqlock: the key of a task of type "order:pay" cannot be used: skip retry for the task: keyfunc: payload field "order_id": malformed`,
	} {
		var log bytes.Buffer
		guard := asynqlock.With(locktest.New(t, core.Logger(slog.New(slog.NewTextHandler(&log, nil))))).ByPayload("order_id")
		ctx := taskContext(t, "my-id", 25)
		err := guard(forbidden(t)).ProcessTask(ctx, asynq.NewTask("order:pay", []byte(payload)))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %s", payload, err, want)
		}
		line := `msg="latchkey: a task was refused because its key cannot be used" `
		if payload == "{}" {
			line = `msg="latchkey: a task was refused because it has no key" `
		}
		line += `type=order:pay task=my-id part=order_id error="`
		if n := strings.Count(log.String(), line); n != 1 || strings.Contains(log.String(), "s3cret") {
			t.Errorf("%s: the log is %s; want %s", payload, &log, line)
		}
	}
}

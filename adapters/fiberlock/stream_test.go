package fiberlock_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/latchkey-go/latchkey/adapters/fiberlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// An answer that is written after the handler has returned is written under the lock.
func TestStreamedAnswersHoldTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		options []core.Option
		window  bool
		all     bool
		status  int
	}{
		"alone":         {},
		"two guards":    {status: http.StatusAccepted},
		"dedup window":  {options: []core.Option{core.KeepFor(time.Hour)}, window: true},
		"failure":       {options: []core.Option{core.KeepFor(time.Hour)}, status: http.StatusBadGateway},
		"background":    {options: []core.Option{core.BackgroundRelease()}},
		"shared":        {options: []core.Option{core.Shared()}},
		"permits":       {options: []core.Option{core.Permits(1)}},
		"all of some":   {all: true},
		"fixed, weight": {options: []core.Option{core.FixedLease(time.Minute), core.Permits(3), core.Weight(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := overhttp.NewLocker(t)
			goOn, app, locks := make(chan struct{}), fiber.New(), fiberlock.With(locker)
			guard := locks.By(orderID, c.options...)
			if c.all {
				guard = locks.ByAll(keyfunc.All("orderID", orderID), c.options...)
			}
			outer := locks.By(keyfunc.Named("outer", orderID))
			app.Post("/orders/:orderID", outer, guard, func(ctx fiber.Ctx) error {
				if c.status > 0 {
					ctx.Status(c.status)
				}
				return ctx.SendStreamWriter(func(w *bufio.Writer) {
					_, _ = w.WriteString("begun ")
					_ = w.Flush()
					<-goOn
					_, _ = w.WriteString("done")
				})
			})
			response, err := http.Post(serve(t, app)+"/orders/42", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			for _, key := range []string{"orderID=42", "outer=42"} {
				if k, err := locker.TryLock(context.Background(), key); !errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("%s while the answer is written: %v, %v", key, k, err)
				}
			}
			close(goOn)
			if text, err := bufio.NewReader(response.Body).ReadString('.'); text != "begun done" {
				t.Errorf("%q, %v", text, err)
			}
			redistest.Await(t, overhttp.Patience, "the end of the lock", func() bool {
				info, err := locker.Inspect(context.Background(), "orderID=42")
				return err == nil && len(info.Holders) == 0 && info.Locked == c.window
			})
		})
	}
}

package hertzlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"github.com/latchkey-go/latchkey/adapters/hertzlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// An answer that is written after the handler has returned is written under the lock.
func TestStreamedAnswersHoldTheLock(t *testing.T) {
	for name, want := range map[string]struct {
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
			goOn, done, locks := make(chan struct{}), make(chan struct{}), hertzlock.With(locker)
			guard := locks.By(orderID, want.options...)
			if want.all {
				guard = locks.ByAll(keyfunc.All("orderID", orderID), want.options...)
			}
			outer := locks.By(keyfunc.Named("outer", orderID))
			url := serve(t, func(h *server.Hertz) {
				returned := func(ctx context.Context, c *app.RequestContext) {
					c.Next(ctx)
					close(done)
				}
				h.POST("/orders/:orderID", returned, outer, guard, func(_ context.Context, c *app.RequestContext) {
					if want.status > 0 {
						c.SetStatusCode(want.status)
					}
					read, write := io.Pipe()
					go func() {
						<-goOn
						_, _ = write.Write([]byte("done"))
						write.Close()
					}()
					c.SetBodyStream(read, -1)
				})
			})
			answer := make(chan overhttp.Answer, 1)
			go func() { answer <- overhttp.Post(t, url+"/orders/42", "") }()
			overhttp.Receive(t, done, "the handlers")
			for _, key := range []string{"orderID=42", "outer=42"} {
				if k, err := locker.TryLock(context.Background(), key); !errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("%s while the answer is written: %v, %v", key, k, err)
				}
			}
			close(goOn)
			if a := overhttp.Receive(t, answer, "the answer"); a.Body != "done" {
				t.Errorf("%v", a)
			}
			redistest.Await(t, overhttp.Patience, "the end of the lock", func() bool {
				info, err := locker.Inspect(context.Background(), "orderID=42")
				return err == nil && len(info.Holders) == 0 && info.Locked == want.window
			})
		})
	}
}

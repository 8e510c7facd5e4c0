package hertzlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"github.com/latchkey-go/latchkey/adapters/hertzlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/conformance/overhttp"
	"github.com/latchkey-go/latchkey/locktest"
)

// Middleware outside finds the reason of a refusal, and its header stays.
func TestMiddlewareOutside(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	url := serve(t, func(h *server.Hertz) {
		h.Use(func(ctx context.Context, c *app.RequestContext) {
			c.Header("X-Outside", "yes")
			c.Next(ctx)
			if last := c.Errors.Last(); last == nil || !errors.Is(last.Err, core.ErrNotAcquired) || !c.IsAborted() {
				t.Errorf("errors %v, aborted %v", c.Errors, c.IsAborted())
			}
		})
		guarded(locker, func(context.Context, *app.RequestContext) { t.Error("the handler ran") }, core.NoWait())(h)
	})
	locktest.Hold(t, locker, "orderID=42")
	a := overhttp.Post(t, url+"/orders/42", "")
	want(t, a, http.StatusConflict)
	if a.Header.Get("X-Outside") != "yes" {
		t.Errorf("header %v", a.Header)
	}
}

// A client that leaves while its handler runs ends the handler's context. The lock is
// kept until the handler returns.
func TestClientLeavesWhileServed(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	url := serve(t, guarded(locker, func(ctx context.Context, c *app.RequestContext) {
		close(entered)
		<-ctx.Done()
		if held := locker.Snapshot("orderID=42").Held; len(held) != 1 {
			t.Errorf("held: %v", held)
		}
		<-leave
	}))
	ctx, cancel := context.WithCancel(context.Background())
	go overhttp.Send(ctx, url+"/orders/42", "")
	overhttp.Receive(t, entered, "the handler")
	cancel()
	close(leave)
	heard.Next(t, core.EventReleased)
	overhttp.WantFree(t, locker)
}

// A handler that returns without a word when its time is over has not succeeded.
func TestSilenceOpensNoWindow(t *testing.T) {
	for _, says := range []string{"", "paid"} {
		locker, _ := overhttp.NewLocker(t)
		url := serve(t, func(h *server.Hertz) {
			h.POST("/orders/:orderID", func(ctx context.Context, c *app.RequestContext) {
				ctx, leave := context.WithCancel(ctx)
				defer leave()
				c.Set("leave", leave)
				c.Next(ctx)
			}, hertzlock.With(locker).By(orderID, core.NoWait(), core.KeepFor(time.Hour)), func(ctx context.Context, c *app.RequestContext) {
				c.MustGet("leave").(context.CancelFunc)()
				<-ctx.Done()
				if says != "" {
					c.String(http.StatusOK, says)
				}
			})
		})
		want(t, overhttp.Post(t, url+"/orders/42", ""), http.StatusOK)
		if says == "" {
			overhttp.WantFree(t, locker)
		} else {
			want(t, overhttp.Post(t, url+"/orders/42", ""), http.StatusConflict)
		}
	}
}

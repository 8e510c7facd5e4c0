package hertzlock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"github.com/latchkey-go/latchkey/adapters/hertzlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
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

// A client that has left gets no body, whoever makes those of refusals.
func TestClientHasLeft(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	url := serve(t, func(h *server.Hertz) {
		h.Use(func(ctx context.Context, c *app.RequestContext) {
			ctx, leave := context.WithCancel(ctx)
			leave()
			c.Next(ctx)
		})
		h.POST("/plain/:orderID", hertzlock.With(locker).By(orderID), nothing)
		h.POST("/own/:orderID", hertzlock.New(hertzlock.Config{Locker: locker, Key: orderID,
			OnRefused: func(context.Context, *app.RequestContext, error) { t.Error("OnRefused was called") }}), nothing)
	})
	for _, route := range []string{"/plain/42", "/own/42"} {
		if a := overhttp.Post(t, url+route, ""); a.Status != 499 || a.Body != "" {
			t.Errorf("%s: %d %q", route, a.Status, a.Body)
		}
	}
}

// A handler that returns without a word when its time is over has not succeeded.
func TestSilenceOpensNoWindow(t *testing.T) {
	for name, says := range map[string]func(*app.RequestContext){
		"nothing":           func(*app.RequestContext) {},
		"a text":            func(c *app.RequestContext) { c.String(http.StatusOK, "paid") },
		"a status":          func(c *app.RequestContext) { c.SetStatusCode(http.StatusNoContent) },
		"a stream, of none": func(c *app.RequestContext) { c.SetBodyStream(strings.NewReader(""), -1) },
	} {
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
				says(c)
			})
		})
		overhttp.Post(t, url+"/orders/42", "")
		if again := overhttp.Post(t, url+"/orders/42", ""); (again.Status == http.StatusConflict) != (name != "nothing") {
			t.Errorf("after %s: %d", name, again.Status)
		}
	}
}

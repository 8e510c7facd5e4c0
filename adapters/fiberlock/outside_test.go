package fiberlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	"github.com/latchkey-go/latchkey/adapters/fiberlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

// Middleware outside finds its own context again, and the reason of a refusal.
func TestMiddlewareOutside(t *testing.T) {
	type mine struct{}
	locker, _ := newLocker(t)
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		own := context.WithValue(context.Background(), mine{}, true)
		c.SetContext(own)
		err := c.Next()
		if c.Context() != own || c.Locals(adapter.ContextKey) != nil {
			t.Error("the context is the lock's")
		}
		if string(c.Request().URI().QueryString()) == "busy" != errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("err %v", err)
		}
		return err
	})
	app.Post("/orders/:orderID", fiberlock.By(locker, orderID, core.NoWait()), func(c fiber.Ctx) error {
		if c.Context().Value(mine{}) == nil {
			t.Error("the values of the context are lost")
		}
		return nil
	})
	url := serve(t, app)
	want(t, post(t, url+"/orders/42", ""), http.StatusOK)
	locktest.Hold(t, locker, "orderID=42")
	want(t, post(t, url+"/orders/42?busy", ""), http.StatusConflict)
}

// What middleware outside says ends the wait: it is the only one who can, for fasthttp
// does not tell that a client has left.
func TestContextEndsTheWait(t *testing.T) {
	locker, heard := newLocker(t)
	app := fiber.New()
	cancels := make(chan context.CancelFunc, 1)
	app.Use(func(c fiber.Ctx) error {
		ctx, cancel := context.WithCancel(c.Context())
		cancels <- cancel
		c.SetContext(ctx)
		return c.Next()
	})
	app.Post("/orders/:orderID", fiberlock.By(locker, orderID, core.Wait(patience)), nothing)
	url := serve(t, app)
	release := locktest.Hold(t, locker, "orderID=42")
	done := make(chan answer, 1)
	go func() { done <- post(t, url+"/orders/42", "") }()
	cancel := receive(t, cancels, "the request")
	heard.next(t, core.EventWaiting)
	cancel()
	if reason := heard.next(t, core.EventBusy).Reason; reason != "canceled" {
		t.Errorf("the wait ended with %q", reason)
	}
	want(t, receive(t, done, "the answer"), 499)
	release()
	wantFree(t, locker)
}

// A request whose client has left waits on, and does not keep the lock.
func TestClientLeavesWhileWaiting(t *testing.T) {
	locker, heard := newLocker(t)
	url := serve(t, guarded(locker, nothing, core.Wait(patience)))
	release := locktest.Hold(t, locker, "orderID=42")
	heard.next(t, core.EventAcquired) // by Hold
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := send(ctx, url+"/orders/42", "")
		done <- err
	}()
	heard.next(t, core.EventWaiting)
	cancel()
	if err := receive(t, done, "the client"); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
	release()
	heard.next(t, core.EventReleased)
	wantFree(t, locker)
}

// fiber's timeout answers before the handler is done. Outside of the guard it leaves
// the lock with the handler.
func TestTimeoutOutside(t *testing.T) {
	locker, heard := newLocker(t)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	app := fiber.New()
	app.Post("/orders/:orderID", timeout.New(fiberlock.By(locker, orderID), timeout.Config{Timeout: 500 * time.Millisecond}),
		func(c fiber.Ctx) error {
			entered <- struct{}{}
			<-leave
			return nil
		})
	want(t, post(t, serve(t, app)+"/orders/42", ""), http.StatusRequestTimeout)
	if len(entered) == 0 {
		t.Skip("the machine was too slow for the handler to begin in time")
	}
	if held := locker.Snapshot("orderID=42").Held; len(held) != 1 {
		t.Errorf("held: %v; the handler still runs", held)
	}
	close(leave)
	heard.next(t, core.EventReleased)
	wantFree(t, locker)
}

// A handler that returns without a word when its time is over has not succeeded.
func TestSilenceOpensNoWindow(t *testing.T) {
	for _, says := range []string{"", "paid"} {
		locker, _ := newLocker(t)
		app := fiber.New()
		app.Post("/orders/:orderID", func(c fiber.Ctx) error {
			ctx, leave := context.WithCancel(c.Context())
			defer leave()
			c.SetContext(ctx)
			c.Locals("leave", leave)
			return c.Next()
		}, fiberlock.By(locker, orderID, core.NoWait(), core.KeepFor(time.Hour)), func(c fiber.Ctx) error {
			c.Locals("leave").(context.CancelFunc)()
			<-c.Context().Done()
			if says == "" {
				return nil
			}
			return c.SendString(says)
		})
		url := serve(t, app)
		want(t, post(t, url+"/orders/42", ""), http.StatusOK)
		if says == "" {
			wantFree(t, locker)
		} else {
			want(t, post(t, url+"/orders/42", ""), http.StatusConflict)
		}
	}
}

package fiberlock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	"github.com/latchkey-go/latchkey/adapters/fiberlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/locktest"
)

// Middleware outside finds its own context again, and the reason of a refusal.
func TestMiddlewareOutside(t *testing.T) {
	type mine struct{}
	locker, _ := overhttp.NewLocker(t)
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
	app.Post("/orders/:orderID", fiberlock.With(locker).By(orderID, core.NoWait()), func(c fiber.Ctx) error {
		if c.Context().Value(mine{}) == nil {
			t.Error("the values of the context are lost")
		}
		return nil
	})
	url := serve(t, app)
	want(t, overhttp.Post(t, url+"/orders/42", ""), http.StatusOK)
	locktest.Hold(t, locker, "orderID=42")
	want(t, overhttp.Post(t, url+"/orders/42?busy", ""), http.StatusConflict)
}

// What middleware outside says ends the wait: it is the only one who can, for fasthttp
// does not tell that a client has left.
func TestContextEndsTheWait(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	app := fiber.New()
	cancels := make(chan context.CancelFunc, 1)
	app.Use(func(c fiber.Ctx) error {
		ctx, cancel := context.WithCancel(c.Context())
		cancels <- cancel
		c.SetContext(ctx)
		return c.Next()
	})
	app.Post("/orders/:orderID", fiberlock.With(locker).By(orderID, core.Wait(overhttp.Patience)), nothing)
	url := serve(t, app)
	release := locktest.Hold(t, locker, "orderID=42")
	done := make(chan overhttp.Answer, 1)
	go func() { done <- overhttp.Post(t, url+"/orders/42", "") }()
	cancel := overhttp.Receive(t, cancels, "the request")
	heard.Next(t, core.EventWaiting)
	cancel()
	if reason := heard.Next(t, core.EventBusy).Reason; reason != "canceled" {
		t.Errorf("the wait ended with %q", reason)
	}
	want(t, overhttp.Receive(t, done, "the answer"), 499)
	release()
	overhttp.WantFree(t, locker)
}

// fiber's timeout answers before the handler is done. Outside of the guard it leaves
// the lock with the handler, until that returns, also with a stream, which nobody reads.
func TestTimeoutOutside(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	app := fiber.New()
	app.Post("/orders/:orderID", timeout.New(fiberlock.With(locker).By(orderID), timeout.Config{Timeout: 500 * time.Millisecond}),
		func(c fiber.Ctx) error {
			entered <- struct{}{}
			<-leave
			return c.SendStream(strings.NewReader("late"))
		})
	want(t, overhttp.Post(t, serve(t, app)+"/orders/42", ""), http.StatusRequestTimeout)
	if len(entered) == 0 {
		t.Skip("the machine was too slow for the handler to begin in time")
	}
	if held := locker.Snapshot("orderID=42").Held; len(held) != 1 {
		t.Errorf("held: %v; the handler still runs", held)
	}
	close(leave)
	heard.Next(t, core.EventReleased)
	overhttp.WantFree(t, locker)
}

// A handler that returns without a word when its time is over has not succeeded.
func TestSilenceOpensNoWindow(t *testing.T) {
	for name, says := range map[string]func(fiber.Ctx) error{
		"nothing":           nothing,
		"a text":            func(c fiber.Ctx) error { return c.SendString("paid") },
		"a status":          func(c fiber.Ctx) error { c.Status(http.StatusNoContent); return nil },
		"a stream, of none": func(c fiber.Ctx) error { return c.SendStream(strings.NewReader("")) },
	} {
		locker, _ := overhttp.NewLocker(t)
		app := fiber.New()
		app.Post("/orders/:orderID", func(c fiber.Ctx) error {
			ctx, leave := context.WithCancel(c.Context())
			defer leave()
			c.SetContext(ctx)
			c.Locals("leave", leave)
			return c.Next()
		}, fiberlock.With(locker).By(orderID, core.NoWait(), core.KeepFor(time.Hour)), func(c fiber.Ctx) error {
			c.Locals("leave").(context.CancelFunc)()
			<-c.Context().Done()
			return says(c)
		})
		url := serve(t, app)
		overhttp.Post(t, url+"/orders/42", "")
		if again := overhttp.Post(t, url+"/orders/42", ""); (again.Status == http.StatusConflict) != (name != "nothing") {
			t.Errorf("after %s: %d", name, again.Status)
		}
	}
}

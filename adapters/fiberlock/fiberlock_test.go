package fiberlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/latchkey-go/latchkey/adapters/fiberlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// What all adapters have in common is tested in internal/overhttp. Here is what is special about fiber.

var orderID = keyfunc.Int(keyfunc.Param("orderID"))

func nothing(fiber.Ctx) error { return nil }

// guarded is an application with one route, whose handler is guarded.
func guarded(locker *core.Locker, handler fiber.Handler, opts ...core.Option) *fiber.App {
	app := fiber.New()
	app.Post("/orders/:orderID", fiberlock.With(locker).By(orderID, opts...), handler)
	return app
}

func want(t *testing.T, a overhttp.Answer, status int) {
	t.Helper()
	if a.Status != status {
		t.Errorf("%d %q, want %d", a.Status, a.Body, status)
	}
}

// In app.Use fiber does not know the route yet.
func TestUseIsASetUpMistake(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	app := fiber.New()
	app.Use(fiberlock.With(locker).By(keyfunc.Optional(orderID)))
	app.Post("/orders/:orderID", func(fiber.Ctx) error { t.Error("the handler ran"); return nil })
	want(t, overhttp.Post(t, serve(t, app)+"/orders/42", ""), http.StatusInternalServerError)
}

func TestParameterThatIsDeclaredTwice(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	app := fiber.New()
	guard := fiberlock.With(locker).ByParam("orderID")
	byHand := fiberlock.With(locker).By(func(r keyfunc.Request) (string, error) {
		r.Param("orderID")
		return "a key all the same", nil
	})
	never := func(fiber.Ctx) error { t.Error("the handler ran"); return nil }
	app.Post("/:orderID/:orderID", guard, never)
	app.Post("/by/hand/:orderID/:orderID", byHand, never)
	app.Post("/:orderID", guard, nothing)
	url := serve(t, app)
	want(t, overhttp.Post(t, url+"/42/43", ""), http.StatusInternalServerError)
	want(t, overhttp.Post(t, url+"/by/hand/42/43", ""), http.StatusInternalServerError)
	want(t, overhttp.Post(t, url+"/42", ""), http.StatusOK)
}

// An error is no success, fiber's own neither.
func TestErrorsOpenNoWindow(t *testing.T) {
	for _, failure := range []error{errors.New("a failure"), fiber.ErrTeapot} {
		locker, _ := overhttp.NewLocker(t)
		want := failure
		app := guarded(locker, func(fiber.Ctx) error { return want }, core.NoWait(), core.KeepFor(time.Hour))
		url := serve(t, app)
		for range 2 {
			if a := overhttp.Post(t, url+"/orders/42", ""); a.Status < 400 || a.Body != failure.Error() {
				t.Errorf("%d %q, want %v", a.Status, a.Body, failure)
			}
		}
	}
}

// What a handler says about the end of its lock is answered as a refusal is, unless it says something of its own.
func TestErrorsOfLocks(t *testing.T) {
	for name, c := range map[string]struct {
		report func(context.Context) error
		want   int
	}{
		"cause":          {context.Cause, http.StatusServiceUnavailable},
		"context":        {context.Context.Err, http.StatusServiceUnavailable},
		"own error":      {func(context.Context) error { return fiber.ErrTeapot }, http.StatusTeapot},
		"done meanwhile": {func(context.Context) error { return nil }, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := overhttp.NewLocker(t)
			url := serve(t, guarded(locker, func(ctx fiber.Ctx) error {
				locktest.Lose(t, locker, "orderID=42")
				overhttp.Receive(t, ctx.Context().Done(), "the end of the context")
				return c.report(ctx.Context())
			}))
			want(t, overhttp.Post(t, url+"/orders/42", ""), c.want)
		})
	}
}

// A handler may take the lock again with fiber's context, too. What another lock of its own says is answered.
func TestLocksInside(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	locktest.Hold(t, locker, "stock:42")
	url := serve(t, guarded(locker, func(c fiber.Ctx) error {
		if err := locker.Do(c, "orderID=42", func(context.Context) error { return nil }, core.NoWait()); err != nil {
			t.Errorf("re-entry: %v", err)
		}
		c.Status(http.StatusTeapot)
		return locker.Do(c.Context(), "stock:42", func(context.Context) error { return nil }, core.NoWait())
	}))
	want(t, overhttp.Post(t, url+"/orders/42", ""), http.StatusConflict)
}

// The functions take the default Locker.
func TestFunctions(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	core.SetDefault(locker)
	t.Cleanup(func() { core.SetDefault(nil) })
	for key, guard := range map[string]fiber.Handler{
		"orderID=42":   fiberlock.ByParam("orderID"),
		"X-Order=43":   fiberlock.ByHeader("X-Order"),
		"id=44":        fiberlock.ByQuery("id"),
		"order:42":     fiberlock.ByTemplate("order:{param.orderID}"),
		"account=42":   fiberlock.ByAll(keyfunc.All("account", keyfunc.Param("orderID"))),
		"X-Order=0043": fiberlock.New(fiberlock.Config{Key: func(keyfunc.Request) (string, error) { return "X-Order=0043", nil }}),
	} {
		app := fiber.New()
		app.Post("/orders/:orderID", guard, func(c fiber.Ctx) error {
			if lock, held := core.FromContext(c.Context()); !held || lock.Key() != key {
				t.Errorf("the lock is %v, want %s", lock, key)
			}
			return nil
		})
		want(t, overhttp.Post(t, serve(t, app)+"/orders/42?id=44", "", "X-Order", "43"), http.StatusOK)
	}
}

package fiberlock_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	recoverer "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/latchkey-go/latchkey/adapters/fiberlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

var orderID = keyfunc.Int(keyfunc.Param("orderID"))

func nothing(fiber.Ctx) error { return nil }

// guarded is an application with one route, whose handler is guarded.
func guarded(locker *core.Locker, handler fiber.Handler, opts ...core.Option) *fiber.App {
	app := fiber.New()
	app.Post("/orders/:orderID", fiberlock.By(locker, orderID, opts...), handler)
	return app
}

// parking returns a handler that says that it has entered, and stays.
func parking() (handler fiber.Handler, entered chan string, leave chan struct{}) {
	entered, leave = make(chan string, 10), make(chan struct{})
	return func(c fiber.Ctx) error {
		entered <- string([]byte(c.Params("orderID")))
		<-leave
		return nil
	}, entered, leave
}

func TestOneRequestAtATime(t *testing.T) {
	locker, heard := newLocker(t)
	handler, entered, leave := parking()
	url := serve(t, guarded(locker, handler, core.Wait(patience)))
	done := make(chan answer, 3)
	order := func(id string) { done <- post(t, url+"/orders/"+id, "") }
	go order("42")
	receive(t, entered, "the first request")
	heard.next(t, core.EventWaiting)
	go order("+042") // the same order
	heard.next(t, core.EventWaiting)
	go order("43") // another one runs beside it
	if id := receive(t, entered, "the request for another order"); id != "43" {
		t.Fatalf("order %s runs beside order 42", id)
	}
	leave <- struct{}{}
	leave <- struct{}{}
	if id := receive(t, entered, "the second request"); id != "+042" {
		t.Errorf("order %s", id)
	}
	leave <- struct{}{}
	for range 3 {
		want(t, receive(t, done, "the answers"), http.StatusOK)
	}
}

func TestBusyIsConflict(t *testing.T) {
	locker, _ := newLocker(t)
	url := serve(t, guarded(locker, nothing, core.NoWait()))
	locktest.Hold(t, locker, "orderID=42")
	a := post(t, url+"/orders/42", "")
	want(t, a, http.StatusConflict)
	if after := a.header.Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After %q", after)
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	locker, _ := newLocker(t)
	app := fiber.New()
	app.Post("/:ms", fiberlock.By(locker, func(r keyfunc.Request) (string, error) {
		ms, _ := r.Param("ms")
		n, err := strconv.Atoi(ms)
		return "", errors.Join(err, &core.BusyError{RetryAfter: time.Duration(n) * time.Millisecond})
	}))
	url := serve(t, app)
	for ms, seconds := range map[string]string{"1": "1", "1000": "1", "1001": "2", "2999": "3"} {
		if after := post(t, url+"/"+ms, "").header.Get("Retry-After"); after != seconds {
			t.Errorf("%s ms: Retry-After %s, want %s", ms, after, seconds)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		key    keyfunc.Func[keyfunc.Request]
		path   string
		header []string
		body   string
		want   int
	}{
		"malformed":               {orderID, "/orders/forty-two", nil, "", 400},
		"empty parameter":         {keyfunc.Param("line"), "/orders/42", nil, "", 400},
		"header missing":          {keyfunc.Header("X-Order"), "/orders/42", nil, "", 400},
		"header twice":            {keyfunc.Header("X-Order"), "/orders/42", []string{"X-Order", "42", "X-Order", "43"}, "", 400},
		"cookie twice":            {keyfunc.Cookie("order"), "/orders/42", []string{"Cookie", "order=42; order=43"}, "", 400},
		"cookie twice, one odd":   {keyfunc.Cookie("order"), "/orders/42", []string{"Cookie", "order=café; order=42"}, "", 400},
		"query twice":             {keyfunc.Query("id"), "/orders/42?id=42&id=43", nil, "", 400},
		"query with a semicolon":  {keyfunc.Query("id"), "/orders/42?id=42;id=43", nil, "", 400},
		"JSON twice":              {keyfunc.JSON("id"), "/orders/42", []string{"Content-Type", "application/json"}, `{"id":42,"id":43}`, 400},
		"encoded body":            {keyfunc.JSON("id"), "/orders/42", []string{"Content-Type", "application/json", "Content-Encoding", "br"}, `{"id":42}`, 400},
		"body too large":          {keyfunc.JSON("id", keyfunc.MaxBytes(4)), "/orders/42", []string{"Content-Type", "application/json"}, `{"id":42}`, 413},
		"empty key":               {func(keyfunc.Request) (string, error) { return "", nil }, "/orders/42", nil, "", 400},
		"other spelling":          {keyfunc.Param("orderid"), "/orders/42", nil, "", 500},
		"other spelling, skipped": {keyfunc.Optional(keyfunc.Param("order_id")), "/orders/42", nil, "", 500},
		"declared twice":          {keyfunc.Param("twice"), "/twice/42/43", nil, "", 500},
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := newLocker(t)
			app := fiber.New()
			guard := fiberlock.By(locker, c.key)
			ran := func(fiber.Ctx) error { t.Error("the handler ran"); return nil }
			app.Post("/orders/:orderID/:line?", guard, ran)
			app.Post("/twice/:twice/:twice", guard, ran)
			want(t, post(t, serve(t, app)+c.path, c.body, c.header...), c.want)
		})
	}
}

// In app.Use fiber does not know the route yet.
func TestUseIsASetUpMistake(t *testing.T) {
	locker, _ := newLocker(t)
	app := fiber.New()
	app.Use(fiberlock.By(locker, keyfunc.Optional(orderID)))
	app.Post("/orders/:orderID", func(fiber.Ctx) error { t.Error("the handler ran"); return nil })
	want(t, post(t, serve(t, app)+"/orders/42", ""), http.StatusInternalServerError)
}

func TestNoLocker(t *testing.T) {
	want(t, post(t, serve(t, guarded(nil, nothing))+"/orders/42", ""), http.StatusInternalServerError)
}

func TestDefaultLocker(t *testing.T) {
	locker, heard := newLocker(t)
	core.SetDefault(locker)
	t.Cleanup(func() { core.SetDefault(nil) })
	want(t, post(t, serve(t, guarded(nil, nothing))+"/orders/042", ""), http.StatusOK)
	if key := heard.next(t, core.EventAcquired).Key; key != "orderID=42" {
		t.Errorf("key %s", key)
	}
}

func TestOutageIsUnavailable(t *testing.T) {
	locker, _ := newLocker(t)
	url := serve(t, guarded(locker, nothing))
	locktest.Outage(t, locker)
	a := post(t, url+"/orders/42", "")
	want(t, a, http.StatusServiceUnavailable)
	if after := a.header.Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After %q", after)
	}
}

// A window opens after a success only.
func TestWindow(t *testing.T) {
	for name, failing := range map[string]fiber.Handler{
		"error":        func(fiber.Ctx) error { return errors.New("a failure") },
		"fiber error":  func(fiber.Ctx) error { return fiber.ErrTeapot },
		"status":       func(c fiber.Ctx) error { return c.SendStatus(http.StatusPaymentRequired) },
		"panic":        func(fiber.Ctx) error { panic("boom") },
		"inner refuse": func(c fiber.Ctx) error { c.Status(http.StatusBadRequest); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := newLocker(t)
			var works atomic.Bool
			app := fiber.New()
			app.Use(recoverer.New())
			app.Post("/orders/:orderID", fiberlock.By(locker, orderID, core.NoWait(), core.KeepFor(time.Hour)), func(c fiber.Ctx) error {
				if !works.Load() {
					return failing(c)
				}
				return nil
			})
			url := serve(t, app)
			if a := post(t, url+"/orders/42", ""); a.status < 400 || a.status == http.StatusConflict {
				t.Errorf("status %d", a.status)
			}
			works.Store(true)
			want(t, post(t, url+"/orders/42", ""), http.StatusOK)
			a := post(t, url+"/orders/42", "")
			want(t, a, http.StatusConflict)
			if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 60 || after > 3600 {
				t.Errorf("Retry-After %d, %v: the window is an hour", after, err)
			}
		})
	}
}

func TestPanicReleases(t *testing.T) {
	locker, _ := newLocker(t)
	app := fiber.New()
	app.Use(recoverer.New())
	app.Post("/orders/:orderID", fiberlock.By(locker, orderID), func(fiber.Ctx) error { panic("boom") })
	if a := post(t, serve(t, app)+"/orders/42", ""); a.status != http.StatusInternalServerError || a.body != "boom" {
		t.Errorf("%v", a)
	}
	wantFree(t, locker)
}

// The handler's context ends with the lock, and what the handler says about that does
// not reach the client.
func TestLoss(t *testing.T) {
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
			locker, _ := newLocker(t)
			url := serve(t, guarded(locker, func(ctx fiber.Ctx) error {
				locktest.Lose(t, locker, "orderID=42")
				receive(t, ctx.Context().Done(), "the end of the context")
				return c.report(ctx.Context())
			}))
			want(t, post(t, url+"/orders/42", ""), c.want)
		})
	}
}

// A handler may take the lock again, with its context and with fiber's. What another
// lock of its own says does not reach the client.
func TestLocksInside(t *testing.T) {
	locker, _ := newLocker(t)
	locktest.Hold(t, locker, "stock:42")
	url := serve(t, guarded(locker, func(c fiber.Ctx) error {
		for _, ctx := range []context.Context{c.Context(), c} {
			if err := locker.Do(ctx, "orderID=42", func(context.Context) error { return nil }, core.NoWait()); err != nil {
				t.Errorf("re-entry: %v", err)
			}
		}
		return locker.Do(c.Context(), "stock:42", func(context.Context) error { return nil }, core.NoWait())
	}))
	want(t, post(t, url+"/orders/42", ""), http.StatusConflict)
}

func TestBadSetUpPanics(t *testing.T) {
	for name, setUp := range map[string]func(){
		"no key":     func() { fiberlock.By(nil, nil) },
		"bad option": func() { fiberlock.By(nil, orderID, core.Lease(0)) },
		"Owner":      func() { fiberlock.By(nil, orderID, core.Owner("me")) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			setUp()
		})
	}
}

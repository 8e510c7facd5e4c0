package hertzlock_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/middlewares/server/recovery"
	"github.com/cloudwego/hertz/pkg/app/server"

	"github.com/latchkey-go/latchkey/adapters/hertzlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

var orderID = keyfunc.Int(keyfunc.Param("orderID"))

func nothing(context.Context, *app.RequestContext) {}

// guarded is one route, whose handler is guarded.
func guarded(locker *core.Locker, handler app.HandlerFunc, opts ...core.Option) func(*server.Hertz) {
	return func(h *server.Hertz) {
		h.POST("/orders/:orderID", hertzlock.By(locker, orderID, opts...), handler)
	}
}

// parking returns a handler that says that it has entered, and stays.
func parking() (handler app.HandlerFunc, entered chan string, leave chan struct{}) {
	entered, leave = make(chan string, 10), make(chan struct{})
	return func(_ context.Context, c *app.RequestContext) {
		entered <- string([]byte(c.Param("orderID")))
		<-leave
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
	go order("042") // the same order
	heard.next(t, core.EventWaiting)
	go order("43") // another one runs beside it
	if id := receive(t, entered, "the request for another order"); id != "43" {
		t.Fatalf("order %s runs beside order 42", id)
	}
	leave <- struct{}{}
	leave <- struct{}{}
	if id := receive(t, entered, "the second request"); id != "042" {
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
	url := serve(t, func(h *server.Hertz) {
		h.POST("/:ms", hertzlock.By(locker, func(r keyfunc.Request) (string, error) {
			ms, _ := r.Param("ms")
			n, err := strconv.Atoi(ms)
			return "", errors.Join(err, &core.BusyError{RetryAfter: time.Duration(n) * time.Millisecond})
		}))
	})
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
		"empty parameter":         {keyfunc.Param("rest"), "/rest/", nil, "", 400},
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
			url := serve(t, func(h *server.Hertz) {
				guard := hertzlock.By(locker, c.key)
				ran := func(context.Context, *app.RequestContext) { t.Error("the handler ran") }
				h.POST("/orders/:orderID", guard, ran)
				h.POST("/rest/*rest", guard, ran)
				h.POST("/twice/:twice/:twice", guard, ran)
			})
			want(t, post(t, url+c.path, c.body, c.header...), c.want)
		})
	}
}

// A group, and h.Use before the routes, know the route.
func TestUse(t *testing.T) {
	locker, heard := newLocker(t)
	url := serve(t, func(h *server.Hertz) {
		h.Use(hertzlock.By(locker, orderID))
		h.POST("/orders/:orderID", nothing)
	})
	want(t, post(t, url+"/orders/42", ""), http.StatusOK)
	if key := heard.next(t, core.EventAcquired).Key; key != "orderID=42" {
		t.Errorf("key %s", key)
	}
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
	for name, failing := range map[string]app.HandlerFunc{
		"error":  func(_ context.Context, c *app.RequestContext) { _ = c.Error(errors.New("a failure")) },
		"status": func(_ context.Context, c *app.RequestContext) { c.SetStatusCode(http.StatusPaymentRequired) },
		"panic":  func(context.Context, *app.RequestContext) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := newLocker(t)
			var works atomic.Bool
			url := serve(t, func(h *server.Hertz) {
				// Errors of earlier middleware are not the handler's.
				earlier := func(_ context.Context, c *app.RequestContext) { _ = c.Error(errors.New("a warning")) }
				h.Use(recovery.Recovery(), earlier)
				guard := hertzlock.By(locker, orderID, core.NoWait(), core.KeepFor(time.Hour))
				h.POST("/orders/:orderID", guard, func(ctx context.Context, c *app.RequestContext) {
					if !works.Load() {
						failing(ctx, c)
					}
				})
			})
			if a := post(t, url+"/orders/42", ""); a.status == http.StatusConflict {
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
	url := serve(t, func(h *server.Hertz) {
		h.Use(recovery.Recovery())
		h.POST("/orders/:orderID", hertzlock.By(locker, orderID), func(context.Context, *app.RequestContext) { panic("boom") })
	})
	want(t, post(t, url+"/orders/42", ""), http.StatusInternalServerError)
	wantFree(t, locker)
}

func TestLossCancels(t *testing.T) {
	locker, _ := newLocker(t)
	url := serve(t, guarded(locker, func(ctx context.Context, c *app.RequestContext) {
		locktest.Lose(t, locker, "orderID=42")
		receive(t, ctx.Done(), "the end of the context")
		if !errors.Is(context.Cause(ctx), core.ErrLost) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		c.SetStatusCode(http.StatusTeapot)
	}))
	want(t, post(t, url+"/orders/42", ""), http.StatusTeapot)
}

func TestReentry(t *testing.T) {
	locker, _ := newLocker(t)
	url := serve(t, guarded(locker, func(ctx context.Context, c *app.RequestContext) {
		if err := locker.Do(ctx, "orderID=42", func(context.Context) error { return nil }, core.NoWait()); err != nil {
			t.Errorf("re-entry: %v", err)
		}
	}))
	want(t, post(t, url+"/orders/42", ""), http.StatusOK)
}

func TestBadSetUpPanics(t *testing.T) {
	for name, setUp := range map[string]func(){
		"no key":     func() { hertzlock.By(nil, nil) },
		"bad option": func() { hertzlock.By(nil, orderID, core.Lease(0)) },
		"Owner":      func() { hertzlock.By(nil, orderID, core.Owner("me")) },
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

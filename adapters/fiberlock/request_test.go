package fiberlock_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/latchkey-go/latchkey/adapters/fiberlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// What the lock is by is what the handler finds.
func TestKeyIsWhatTheHandlerReads(t *testing.T) {
	for name, c := range map[string]struct {
		key     keyfunc.Func[keyfunc.Request]
		request string
		read    func(fiber.Ctx) string
	}{
		"path": {keyfunc.Param("id"), "POST /42", func(c fiber.Ctx) string { return "id=" + c.Params("id") }},
		"path, escaped": {keyfunc.Unescaped(keyfunc.Param("id")), "POST /4%32", func(c fiber.Ctx) string {
			id, _ := url.PathUnescape(c.Params("id")) // fiber does not
			return "id=" + id
		}},
		"path, upper case": {keyfunc.Param("id"), "POST /aB", func(c fiber.Ctx) string { return "id=" + c.Params("id") }},
		"query":            {keyfunc.Query("q"), "POST /1?q=4%32", func(c fiber.Ctx) string { return "q=" + c.Query("q") }},
		"query, plus":      {keyfunc.Query("q"), "POST /1?q=4+2", func(c fiber.Ctx) string { return "q=" + c.Query("q") }},
		"query, fragment":  {keyfunc.Query("q"), "POST /1?q=42#1", func(c fiber.Ctx) string { return "q=" + c.Query("q") }},
		"query, name":      {keyfunc.Query("q"), "POST /1?%71=42", func(c fiber.Ctx) string { return "q=" + c.Query("q") }},
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := overhttp.NewLocker(t)
			app := fiber.New()
			app.Post("/:id", fiberlock.With(locker).By(c.key), func(ctx fiber.Ctx) error {
				if k, held := core.FromContext(ctx.Context()); !held || k.Key() != c.read(ctx) {
					t.Errorf("the lock is %q, the handler reads %q", k.Key(), c.read(ctx))
				}
				return nil
			})
			if got := overhttp.Exchange(t, serve(t, app), c.request); got[0] != http.StatusOK {
				t.Errorf("status %d", got)
			}
		})
	}
}

// fiber routes by the path as it was sent, in which dot segments may lead a server behind it
// to another order.
func TestDotSegmentsAreRefused(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	app := fiber.New()
	app.Post("/orders/:id/*", fiberlock.With(locker).By(keyfunc.Param("id")), func(fiber.Ctx) error { return nil })
	app.Post("/files/*", fiberlock.With(locker).By(keyfunc.Path(keyfunc.Param("*1"))), func(c fiber.Ctx) error {
		if k, _ := core.FromContext(c.Context()); k.Key() != "*1=a/b" {
			t.Errorf("the lock is %q", k.Key())
		}
		return nil
	})
	app.Post("/plain/*", fiberlock.With(locker).By(keyfunc.Param("*1")), func(fiber.Ctx) error { return nil })
	want := map[string]int{
		"/orders/42/pay": http.StatusOK, "/orders/42/.pay": http.StatusOK,
		"/orders/42/%2e%2e/43/pay": http.StatusBadRequest, "/orders/42/../43/pay": http.StatusBadRequest,
		"/orders/42/%2e%2e/43/%zz": http.StatusBadRequest,
		"/files/a/x/%2e%2e/b":      http.StatusOK, "/files/a//b": http.StatusOK,
		"/plain/a/b": http.StatusOK, "/plain//a/b": http.StatusBadRequest,
	}
	for path, status := range want {
		if got := overhttp.Exchange(t, serve(t, app), "POST "+path); got[0] != status {
			t.Errorf("%s: status %d, want %d", path, got[0], status)
		}
	}
}

// The name of a lock lives longer than the request, whose texts fiber overwrites.
func TestKeyIsCopied(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	byHand := func(r keyfunc.Request) (string, error) { return r.Value("order").(string), nil }
	app := fiber.New()
	app.Post("/:id", func(c fiber.Ctx) error {
		c.Locals("order", c.Params("id")) // valid within the handler only
		return c.Next()
	}, fiberlock.With(locker).By(byHand), nothing)
	requests := []string{"POST /order-1", "POST /order-2", "POST /order-3"}
	overhttp.Exchange(t, serve(t, app), requests...)
	for i := range requests {
		if key := heard.Next(t, core.EventReleased).Key; key != fmt.Sprintf("order-%d", i+1) {
			t.Errorf("the lock of request %d is now %q", i+1, key)
		}
	}
}

// The handler finds the body, also after a key function has read it, and the values of
// earlier middleware are found.
func TestBodyAndValues(t *testing.T) {
	type typedKey struct{}
	locker, _ := overhttp.NewLocker(t)
	app := fiber.New()
	app.Post("/", func(c fiber.Ctx) error {
		c.Locals("user", "u1")
		c.Locals(typedKey{}, 7)
		return c.Next()
	}, fiberlock.With(locker).By(keyfunc.Join(keyfunc.JSON("id"), keyfunc.JSON("line"), keyfunc.Value("user"),
		keyfunc.Named("n", keyfunc.Value(typedKey{})), keyfunc.Header("Host"), keyfunc.RemoteIP())),
		func(c fiber.Ctx) error {
			k, _ := core.FromContext(c.Context())
			return c.SendString(k.Key() + " " + string(c.Body()))
		})
	a := overhttp.Post(t, serve(t, app), `{"id":42,"line":1}`, "Content-Type", "application/json")
	host, _, _ := strings.Cut(strings.TrimPrefix(a.Body, `id=42:line=1:value.user=u1:n=7:Host=`), `\:`)
	if host != "127.0.0.1" || !strings.HasSuffix(a.Body, `:remoteIP=127.0.0.1 {"id":42,"line":1}`) {
		t.Errorf("%q", a.Body)
	}
}

// A body that is not in memory is no place for a key, and stays where it is.
func TestStreamedBody(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	app := fiber.New(fiber.Config{StreamRequestBody: true})
	app.Post("/body", fiberlock.With(locker).By(keyfunc.Optional(keyfunc.JSON("id"))), func(fiber.Ctx) error {
		t.Error("the handler ran")
		return nil
	})
	app.Post("/header", fiberlock.With(locker).By(keyfunc.Header("X-Order")), func(c fiber.Ctx) error {
		text, err := io.ReadAll(c.Request().BodyStream())
		if err != nil {
			return err
		}
		return c.Send(text)
	})
	url := serve(t, app)
	want(t, overhttp.Post(t, url+"/body", `{"id":42}`, "Content-Type", "application/json"), http.StatusBadRequest)
	if a := overhttp.Post(t, url+"/header", "a body", "X-Order", "42"); a.Body != "a body" {
		t.Errorf("%v", a)
	}
}

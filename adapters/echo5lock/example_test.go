package echo5lock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/labstack/echo/v5"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// newLocker is a Locker on an embedded Redis. Yours is on a real one.
func newLocker() (locker *core.Locker, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	locker, err = core.New(client)
	if err != nil {
		panic(err)
	}
	return locker, func() { _ = client.Close(); server.Close() }
}

func request(server http.Handler, method, target string, header ...string) {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
}

func ExampleByParam() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	e := echo.New()
	e.Use(echo5lock.ByParam("orderID"))
	e.POST("/orders/:orderID/pay", func(c *echo.Context) error {
		lock, _ := core.FromContext(c.Request().Context())
		return c.String(http.StatusOK, fmt.Sprintf("paid under the lock %q", lock.Key()))
	})

	request(e, "POST", "/orders/42/pay")
	// Output: 200 paid under the lock "orderID=42"
}

// A request that comes twice is answered once: the key stays taken for ten
// minutes after a success.
func ExampleByHeader() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	e := echo.New()
	e.Use(echo5lock.ByHeader("Idempotency-Key", core.NoWait(), core.KeepFor(10*time.Minute)))
	e.POST("/payments", func(c *echo.Context) error { return c.String(http.StatusOK, "paid") })

	request(e, "POST", "/payments", "Idempotency-Key", "abc")
	request(e, "POST", "/payments", "Idempotency-Key", "abc")
	request(e, "POST", "/payments")
	// Output:
	// 200 paid
	// 409 {"type":"about:blank","title":"Conflict","status":409,"detail":"A request for the same resource was processed just now.","code":"done"}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"A required part of the request is missing.","code":"missing","part":"Idempotency-Key"}
}

func ExampleByTemplate() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	e := echo.New()
	e.Use(echo5lock.ByTemplate("order:{param.orderID}:user:{header.X-User-ID}"))
	e.POST("/orders/:orderID", func(c *echo.Context) error {
		lock, _ := core.FromContext(c.Request().Context())
		return c.String(http.StatusOK, lock.Key())
	})

	request(e, "POST", "/orders/42", "X-User-ID", "u7")
	// Output: 200 order:42:user:u7
}

// A key of several parts: per user and item, with the item in one form.
func ExampleBy() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc { // authentication
		return func(c *echo.Context) error {
			c.Set("userID", "u7")
			return next(c)
		}
	})
	e.Use(echo5lock.By(keyfunc.Join(
		keyfunc.Const[keyfunc.Request]("cart"),
		keyfunc.Value("userID"),
		keyfunc.Int(keyfunc.Query("item")),
	)))
	e.POST("/cart", func(c *echo.Context) error {
		lock, _ := core.FromContext(c.Request().Context())
		return c.String(http.StatusOK, lock.Key())
	})

	request(e, "POST", "/cart?item=042")
	// Output: 200 cart:value.userID=u7:item=42
}

// New has what the By functions leave out.
func ExampleNew() {
	locker, stop := newLocker()
	defer stop()

	e := echo.New()
	e.Use(echo5lock.New(echo5lock.Config{
		Locker: locker,
		Key:    keyfunc.Param("orderID"),
		Skip:   func(c *echo.Context) bool { return c.Request().Method == http.MethodGet },
		OnRefused: func(c *echo.Context, err error) error {
			return c.String(http.StatusLocked, "busy, come back later")
		},
		Options: []core.Option{core.NoWait(), core.KeepFor(time.Minute)},
	}))
	e.Any("/orders/:orderID", func(c *echo.Context) error { return c.String(http.StatusOK, "done") })

	request(e, "POST", "/orders/42")
	request(e, "POST", "/orders/42")
	request(e, "GET", "/orders/42")
	// Output:
	// 200 done
	// 423 busy, come back later
	// 200 done
}

// A transfer has the locks of both accounts, in whatever order a request names them.
func ExampleByAll() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	e := echo.New()
	accounts := keyfunc.All("account", keyfunc.Param("from"), keyfunc.Param("to"))
	e.POST("/transfer/:from/:to", func(c *echo.Context) error {
		if c.Param("from") == "1" { // the way back comes before the way there is done
			request(e, "POST", "/transfer/2/1")
		}
		return c.String(http.StatusOK, "from "+c.Param("from")+" to "+c.Param("to"))
	}, echo5lock.ByAll(accounts, core.NoWait()))

	request(e, "POST", "/transfer/1/2")
	request(e, "POST", "/transfer/2/1")
	// Output:
	// 409 {"type":"about:blank","title":"Conflict","status":409,"detail":"Another request for the same resource is being processed.","code":"busy"}
	// 200 from 1 to 2
	// 200 from 2 to 1
}

package ginlock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
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

// newRouter is gin.New without its start-up messages.
func newRouter() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	return gin.New()
}

func request(router *gin.Engine, method, target string, header ...string) {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	router.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
}

func ExampleByParam() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	router := newRouter()
	router.Use(ginlock.ByParam("orderID"))
	router.POST("/orders/:orderID/pay", func(c *gin.Context) {
		lock, _ := core.FromContext(c.Request.Context())
		c.String(http.StatusOK, "paid under the lock %q", lock.Key())
	})

	request(router, "POST", "/orders/42/pay")
	// Output: 200 paid under the lock "orderID=42"
}

// A request that comes twice is answered once: the key stays taken for ten
// minutes after a success.
func ExampleByHeader() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	router := newRouter()
	router.Use(ginlock.ByHeader("Idempotency-Key", core.NoWait(), core.KeepFor(10*time.Minute)))
	router.POST("/payments", func(c *gin.Context) { c.String(http.StatusOK, "paid") })

	request(router, "POST", "/payments", "Idempotency-Key", "abc")
	request(router, "POST", "/payments", "Idempotency-Key", "abc")
	request(router, "POST", "/payments")
	// Output:
	// 200 paid
	// 409 {"type":"about:blank","title":"Conflict","status":409,"detail":"A request for the same resource was processed just now.","code":"done"}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"A required part of the request is missing.","code":"missing","part":"Idempotency-Key"}
}

func ExampleByTemplate() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	router := newRouter()
	router.Use(ginlock.ByTemplate("order:{param.orderID}:user:{header.X-User-ID}"))
	router.POST("/orders/:orderID", func(c *gin.Context) {
		lock, _ := core.FromContext(c.Request.Context())
		c.String(http.StatusOK, lock.Key())
	})

	request(router, "POST", "/orders/42", "X-User-ID", "u7")
	// Output: 200 order:42:user:u7
}

// A key of several parts: per user and item, with the item in one form.
func ExampleBy() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	router := newRouter()
	router.Use(func(c *gin.Context) { c.Set("userID", "u7") }) // authentication
	router.Use(ginlock.By(keyfunc.Join(
		keyfunc.Const[keyfunc.Request]("cart"),
		keyfunc.Value("userID"),
		keyfunc.Int(keyfunc.Query("item")),
	)))
	router.POST("/cart", func(c *gin.Context) {
		lock, _ := core.FromContext(c.Request.Context())
		c.String(http.StatusOK, lock.Key())
	})

	request(router, "POST", "/cart?item=042")
	// Output: 200 cart:value.userID=u7:item=42
}

// New has what the By functions leave out.
func ExampleNew() {
	locker, stop := newLocker()
	defer stop()

	router := newRouter()
	router.Use(ginlock.New(ginlock.Config{
		Locker: locker,
		Key:    keyfunc.Param("orderID"),
		Skip:   func(c *gin.Context) bool { return c.Request.Method == http.MethodGet },
		OnRefused: func(c *gin.Context, err error) {
			c.String(http.StatusLocked, "busy, come back later")
		},
		Options: []core.Option{core.NoWait(), core.KeepFor(time.Minute)},
	}))
	pay := func(c *gin.Context) { c.String(http.StatusOK, "paid") }
	router.POST("/orders/:orderID", pay)

	request(router, "POST", "/orders/42")
	request(router, "POST", "/orders/42")
	// Output:
	// 200 paid
	// 423 busy, come back later
}

// The house's error format, once for all guards.
func ExampleSetOnRefused() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)
	ginlock.SetOnRefused(func(c *gin.Context, err error) {
		status, retry := ginlock.StatusOf(err) // c.Writer.Status() is the same
		code, text := ginlock.ReasonOf(err)
		c.JSON(status, gin.H{"code": code, "error": text, "retry_in": retry.String()})
	})
	defer ginlock.SetOnRefused(nil)

	router := newRouter()
	router.Use(ginlock.ByParam("orderID", core.NoWait(), core.KeepFor(time.Minute)))
	router.POST("/orders/:orderID/pay", func(c *gin.Context) { c.String(http.StatusOK, "paid") })

	request(router, "POST", "/orders/42/pay")
	request(router, "POST", "/orders/42/pay")
	// Output:
	// 200 paid
	// 409 {"code":"done","error":"A request for the same resource was processed just now.","retry_in":"1m0s"}
}

// ReasonOf also knows the errors of locks that a handler takes itself.
func ExampleReasonOf() {
	locker, stop := newLocker()
	defer stop()

	router := newRouter()
	router.POST("/transfers", func(c *gin.Context) {
		held, err := locker.Lock(c.Request.Context(), "account=7")
		if err != nil {
			return
		}
		defer func() { _ = held.Unlock(c.Request.Context()) }()

		stranger := core.Detach(c.Request.Context())
		_, err = locker.TryLock(stranger, "account=7")
		status, _ := ginlock.StatusOf(err)
		code, text := ginlock.ReasonOf(err)
		c.String(status, "%s: %s", code, text)
	})

	request(router, "POST", "/transfers")
	// Output: 409 busy: Another request for the same resource is being processed.
}

// A route whose locks are in another Redis than those of the others.
func ExampleLocker() {
	locker, stop := newLocker()
	defer stop()
	reports, stopReports := newLocker()
	defer stopReports()

	locks := ginlock.With(locker)
	router := newRouter()
	router.POST("/reports/:id", locks.ByParam("id", ginlock.Locker(reports)), func(c *gin.Context) {
		here, _ := locker.Inspect(c, "id=7")
		there, _ := reports.Inspect(c, "id=7")
		c.String(http.StatusOK, "locked: %v and %v", here.Locked, there.Locked)
	})

	request(router, "POST", "/reports/7")
	// Output: 200 locked: false and true
}

// A body of more than 16 bytes is refused, also where its length is not known before.
func ExampleBufferBody() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	router := newRouter()
	router.Use(ginlock.ByParam("orderID", ginlock.BufferBody(16)))
	router.POST("/orders/:orderID/note", func(c *gin.Context) {
		body, _ := c.GetRawData()
		c.String(http.StatusOK, "noted: %s", body)
	})

	for _, note := range []string{"short", "far too long to be noted"} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("POST", "/orders/42/note", strings.NewReader(note)))
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 noted: short
	// 413 {"type":"about:blank","title":"Request Entity Too Large","status":413,"detail":"The request body is too large.","code":"too_large","part":"body"}
}

// A transfer has the locks of both accounts, in whatever order a request names them.
func ExampleByAll() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	router := newRouter()
	accounts := keyfunc.All("account", keyfunc.Param("from"), keyfunc.Param("to"))
	router.POST("/transfer/:from/:to", ginlock.ByAll(accounts, core.NoWait()), func(c *gin.Context) {
		if c.Param("from") == "1" { // the way back comes before the way there is done
			request(router, "POST", "/transfer/2/1")
		}
		c.String(http.StatusOK, "from %s to %s", c.Param("from"), c.Param("to"))
	})

	request(router, "POST", "/transfer/1/2")
	request(router, "POST", "/transfer/2/1")
	// Output:
	// 409 {"type":"about:blank","title":"Conflict","status":409,"detail":"Another request for the same resource is being processed.","code":"busy"}
	// 200 from 1 to 2
	// 200 from 2 to 1
}

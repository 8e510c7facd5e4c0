// Echo guards routes of echo v5 by a field of the JSON body, and answers refusals
// in the application's own form.
//
//	go run ./examples/echo                        # on an embedded Redis
//	go run ./examples/echo -redis localhost:6379  # on a real one
//	go run ./examples/echo -serve :8080           # serves until interrupted, for curl
//
// For echo v4 import github.com/latchkey-go/latchkey/echolock: the same functions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock/v5"
	"github.com/latchkey-go/latchkey/examples/internal/start"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	serve     = flag.String("serve", "", "address to serve at until interrupted, such as :8080")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("echo: ", err)
	}
}

func run(ctx context.Context) error {
	addr, stop, err := start.Redis(ctx, *redisAddr)
	if err != nil {
		return err
	}
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	locker, err := core.New(client)
	if err != nil {
		return err
	}
	defer locker.Close(context.WithoutCancel(ctx))
	core.SetDefault(locker)

	if *serve != "" {
		return keepServing(ctx, newApp())
	}
	server := httptest.NewServer(newApp())
	defer server.Close()
	return demonstrate(ctx, server.URL)
}

// transfer is what a client sends.
type transfer struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Amount int64 `json:"amount"`
}

func newApp() *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = answerError

	// One transfer at a time from one account. Without NoWait a request waits up to
	// 3 s for the one before it.
	perAccount := echolock.By(keyfunc.Scope("account", keyfunc.JSON("from")), core.NoWait())

	e.POST("/transfers", func(c *echo.Context) error {
		var t transfer
		if err := c.Bind(&t); err != nil { // the body is still there
			return err
		}
		time.Sleep(200 * time.Millisecond)
		return c.String(http.StatusOK, fmt.Sprintf("%d from account %d to %d\n", t.Amount, t.From, t.To))
	}, perAccount)
	return e
}

// answerError sees a refusal as any other error: an *echo.HTTPError, with the reason
// inside.
func answerError(c *echo.Context, err error) {
	if errors.Is(err, core.ErrNotAcquired) {
		_ = c.String(http.StatusConflict, "another transfer from this account is under way\n")
		return
	}
	echo.DefaultHTTPErrorHandler(false)(c, err)
}

// demonstrate sends four requests at once, three of them for one account, and two
// that no lock can be found for.
func demonstrate(ctx context.Context, url string) error {
	for _, wave := range [][]string{
		{
			`{"from":1,"to":2,"amount":10}`, `{"from":1,"to":3,"amount":20}`, `{"from":1,"to":4,"amount":30}`,
			`{"from":2,"to":1,"amount":40}`,
		},
		{`{"from":1,"to":2,"amount":50}`},
		{`{"to":2,"amount":60}`},
		{`{"from":1,"from":2,"to":2,"amount":70}`}, // would be locked as one, handled as the other
	} {
		failures := make([]error, len(wave))
		var all sync.WaitGroup
		for i, body := range wave {
			all.Go(func() { failures[i] = post(ctx, url+"/transfers", body) })
		}
		all.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	return nil
}

func post(ctx context.Context, url, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	fmt.Printf("%-40s  %d  %s\n", body, response.StatusCode, strings.TrimSpace(string(answer)))
	return err
}

// keepServing serves until interrupted.
func keepServing(ctx context.Context, handler http.Handler) error {
	listener, url, err := start.Listen(*serve)
	if err != nil {
		return err
	}
	fmt.Printf("Serving at %s until interrupted. Try, in two terminals:\n", url)
	fmt.Printf("  curl -d '{\"from\":1,\"to\":2,\"amount\":5}' -H 'Content-Type: application/json' %s/transfers\n", url)
	return start.Serve(ctx, listener, handler)
}

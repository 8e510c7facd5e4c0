//go:build go1.25

// Echo moves money between accounts with echo v4. A transfer reads and writes two accounts, so
// it needs the locks of both, and transfers that cross one another must not wait for one
// another. Two servers get a storm of such transfers: without a lock, with one lock inside of
// the other, and with both together.
//
//	go run ./examples/echo                        # on an embedded Redis
//	go run ./examples/echo -redis localhost:6379  # on a real one
//	go run ./examples/echo -serve :8080           # serves until interrupted, for curl
//
// For echo v5 import github.com/latchkey-go/latchkey/adapters/echo5lock: the same functions.
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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	"github.com/latchkey-go/latchkey/examples/internal/start"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const (
	accounts  = 4
	beginning = 1000                  // what is in each of them
	storm     = 60                    // transfers, all at once
	takes     = 20 * time.Millisecond // each, once it has its locks
)

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	serve     = flag.String("serve", "", "address to serve at until interrupted, such as :8080")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("echo: ", err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	addr, stop, err := start.Redis(ctx, *redisAddr)
	if err != nil {
		return err
	}
	defer stop()
	var servers []string
	b := &bank{name: "example:bank:" + uuid.NewString()}
	for range 2 { // with a Locker each, as two processes have
		client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		defer client.Close()
		locker, err := core.New(client)
		if err != nil {
			return err
		}
		defer locker.Close(context.WithoutCancel(ctx))
		b.client = client
		if *serve != "" {
			if _, err := b.open(ctx); err != nil {
				return err
			}
			return keepServing(ctx, newApp(b, locker))
		}
		server := httptest.NewServer(newApp(b, locker))
		defer server.Close()
		servers = append(servers, server.URL)
	}
	return demonstrate(ctx, out, b, servers)
}

// transfer is what a client sends.
type transfer struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Amount int64 `json:"amount"`
}

func newApp(b *bank, locker *core.Locker) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = answerError
	own, patience := echolock.Locker(locker), core.Wait(30*time.Second)

	e.POST("/unsafe", b.transfer)

	// One lock inside of the other: a transfer from 1 to 2 and one from 2 to 1 hold one each, and
	// wait for the other one.
	from := keyfunc.Named("account", keyfunc.JSON("from"))
	to := keyfunc.Named("account", keyfunc.JSON("to"))
	e.POST("/nested", b.transfer, echolock.By(from, own, patience), echolock.By(to, own, patience))

	// Both together, in one line.
	both := keyfunc.All("account", keyfunc.JSON("from"), keyfunc.JSON("to"))
	e.POST("/transfers", b.transfer, echolock.ByAll(both, own, patience))
	return e
}

// answerError sees a refusal as any other error: an *echo.HTTPError, with the reason
// inside.
func answerError(err error, c echo.Context) {
	if errors.Is(err, core.ErrNotAcquired) {
		_ = c.String(http.StatusConflict, "another transfer of these accounts is under way")
		return
	}
	c.Echo().DefaultHTTPErrorHandler(err, c)
}

// bank keeps accounts in Redis, and relies on those who call it for their order.
type bank struct {
	client *redis.Client
	name   string       // of a hash
	worked atomic.Int64 // for how long transfers were at work, in ns
}

func (b *bank) transfer(c echo.Context) error {
	began := time.Now()
	defer func() { b.worked.Add(int64(time.Since(began))) }()
	var t transfer
	if err := c.Bind(&t); err != nil { // the body is still there
		return err
	}
	ctx := c.Request().Context()
	from, err := b.client.HGet(ctx, b.name, strconv.FormatInt(t.From, 10)).Int64()
	if err != nil {
		return err
	}
	to, err := b.client.HGet(ctx, b.name, strconv.FormatInt(t.To, 10)).Int64()
	if err != nil {
		return err
	}
	time.Sleep(takes)
	if err := b.client.HSet(ctx, b.name, t.From, from-t.Amount, t.To, to+t.Amount).Err(); err != nil {
		return err
	}
	return c.String(http.StatusOK, fmt.Sprintf("%d from account %d to %d", t.Amount, t.From, t.To))
}

// open has all accounts begin anew.
func (b *bank) open(ctx context.Context) (balances map[string]int, err error) {
	balances = map[string]int{}
	for account := range accounts {
		balances[strconv.Itoa(account+1)] = beginning
	}
	fields := map[string]any{}
	for account, balance := range balances {
		fields[account] = balance
	}
	return balances, b.client.HSet(ctx, b.name, fields).Err()
}

// money is what is in all accounts, and in how many of them there is something else than
// there should be.
func (b *bank) money(ctx context.Context, should map[string]int) (sum, wrong int, err error) {
	balances, err := b.client.HGetAll(ctx, b.name).Result()
	for account, balance := range balances {
		n, _ := strconv.Atoi(balance)
		sum += n
		if n != should[account] {
			wrong++
		}
	}
	return sum, wrong, err
}

// demonstrate sends a storm in each of three ways, and requests that have no key.
func demonstrate(ctx context.Context, out io.Writer, b *bank, servers []string) error {
	defer b.client.Del(context.WithoutCancel(ctx), b.name)
	fmt.Fprintf(out, "%d transfers at once between %d accounts with %d in all, to %d servers; each takes %v\n\n",
		storm, accounts, accounts*beginning, len(servers), takes)
	fmt.Fprintf(out, "%-11s %6s %9s %8s %16s %14s\n", "", "done", "refused", "money", "wrong balances", "longest wait")
	for _, path := range []string{"/unsafe", "/nested", "/transfers"} {
		should, err := b.open(ctx)
		if err != nil {
			return err
		}
		b.worked.Store(0)
		var mu sync.Mutex
		var done, refused int
		var longest time.Duration
		var failure error
		var all sync.WaitGroup
		for i := range storm {
			from, to := i%accounts+1, (i+1+i/accounts%(accounts-1))%accounts+1
			body := fmt.Sprintf(`{"from":%d,"to":%d,"amount":%d}`, from, to, i+1)
			all.Go(func() {
				began := time.Now()
				status, _, err := post(ctx, servers[i%len(servers)]+path, body)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					failure = err
				case status == http.StatusOK:
					done++
					should[strconv.Itoa(from)] -= i + 1
					should[strconv.Itoa(to)] += i + 1
					longest = max(longest, time.Since(began)-takes)
				default:
					refused++
				}
			})
		}
		all.Wait()
		money, wrong, err := b.money(ctx, should)
		if err := errors.Join(failure, err); err != nil {
			return err
		}
		fmt.Fprintf(out, "%-11s %6d %9d %8d %16d %14s\n", path, done, refused, money, wrong, longest.Round(time.Millisecond))
	}
	fmt.Fprintf(out, "\nThe last %d took %v of work: so long the last one waits if they come one after the other, in order of arrival.\n\n",
		storm, time.Duration(b.worked.Load()).Round(time.Millisecond))

	for _, body := range []string{
		`{"to":2,"amount":60}`,
		`{"from":1,"from":2,"to":3,"amount":70}`, // would be locked as one, handled as the other
	} {
		status, answer, err := post(ctx, servers[0]+"/transfers", body)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-40s  %d  %s\n", body, status, answer)
	}
	return nil
}

func post(ctx context.Context, url, body string) (status int, answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(text)), err
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

//go:build go1.25

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// errBank fails the first try of each job that charges for an order.
var errBank = errors.New("the bank does not answer")

// checkout is the part of the shop where a click on "buy" starts a job that charges what the
// order costs by then. Both the click and whoever changes the order have its lock meanwhile.
type checkout struct {
	client *redis.Client
	jobs   *asynq.Client
}

func (c *checkout) handle(mux *http.ServeMux) {
	guard := httplock.ByParam("orderID", core.Wait(20*time.Second))
	mux.Handle("POST /orders/{orderID}/buy", guard(http.HandlerFunc(c.buy)))
	mux.Handle("POST /orders/{orderID}/items", guard(http.HandlerFunc(c.addItem)))
}

func (c *checkout) buy(w http.ResponseWriter, r *http.Request) {
	ctx, j := r.Context(), job{Run: r.FormValue("run"), OrderID: r.PathValue("orderID"), Total: 100}
	err := c.client.HSet(ctx, j.records(), "total", j.Total).Err()
	payload, failure := json.Marshal(j)
	if err = errors.Join(err, failure); err == nil {
		task := asynq.NewTask("settle", payload)
		if r.FormValue("along") == "" {
			_, err = c.jobs.EnqueueContext(ctx, task, asynq.Queue(queue))
		} else {
			// The lock is handed over: the worker has it next, whoever waits for it. Within a minute
			// the job must start, and after a failure start again.
			lock, _ := core.FromContextKey(ctx, keyfunc.Key("orderID", j.OrderID))
			_, err = asynqlock.Enqueue(ctx, c.jobs, lock, task, time.Minute, asynq.Queue(queue))
		}
	}
	reply(w, err)
}

// addItem changes an order that is not paid.
func (c *checkout) addItem(w http.ResponseWriter, r *http.Request) {
	ctx, j := r.Context(), job{Run: r.FormValue("run"), OrderID: r.PathValue("orderID")}
	paid, err := c.client.HExists(ctx, j.records(), "charged").Result()
	if paid {
		http.Error(w, "it is paid", http.StatusGone)
		return
	}
	if err == nil {
		err = c.client.HIncrBy(ctx, j.records(), "total", 10).Err()
	}
	reply(w, err)
}

// settle handles a job: it charges what the order cost at the click.
func (w *worker) settle(ctx context.Context, t *asynq.Task) error {
	var j job
	if err := json.Unmarshal(t.Payload(), &j); err != nil {
		return fmt.Errorf("%w: %w", asynq.SkipRetry, err)
	}
	time.Sleep(50 * time.Millisecond)
	if n, _ := asynq.GetRetryCount(ctx); n == 0 {
		return errBank
	}
	return w.client.HSet(ctx, j.records(), "charged", j.Total).Err()
}

// compareCheckouts has each order bought, and then changed, first with a lock that ends with
// the request, then with one that is handed over to the job.
func compareCheckouts(ctx context.Context, client *redis.Client, addr string) error {
	fmt.Println("A click on \"buy\" starts a job, whose first try fails. Meanwhile somebody adds an item to the order.")
	without, err := checkouts(ctx, client, addr, "The lock ends with the request", "")
	if err != nil {
		return err
	}
	with, err := checkouts(ctx, client, addr, "The lock is handed over to the job", "yes")
	switch {
	case err != nil:
		return err
	case with > 0:
		return fmt.Errorf("%d orders went wrong although the lock was handed over", with)
	case without == 0:
		return errors.New("no order went wrong without it, either: the workers were too slow to show it")
	}
	return nil
}

// checkouts returns how many orders went wrong.
func checkouts(ctx context.Context, client *redis.Client, addr, title, along string) (wrong int, err error) {
	began := time.Now()
	run := strconv.FormatInt(began.UnixNano(), 36)
	rows, errs := make([]string, *orders), make([]error, *orders)
	var customers sync.WaitGroup
	var mu sync.Mutex
	for i := range *orders {
		customers.Go(func() {
			j := job{Run: run, OrderID: strconv.Itoa(i + 1)}
			url := fmt.Sprintf("http://%s/orders/%s/%%s?run=%s&along=%s", addr, j.OrderID, run, along)
			if errs[i] = post(fmt.Sprintf(url, "buy")); errs[i] != nil {
				return
			}
			asked := time.Now()
			added := post(fmt.Sprintf(url, "items"))
			waited := time.Since(asked).Round(10 * time.Millisecond)
			records, err := awaitRecords(ctx, client, j, "charged", 100)
			if errs[i] = err; err != nil {
				return
			}
			verdict := "added after " + waited.String()
			if added != nil {
				verdict = "refused after " + waited.String()
			}
			if records["charged"] != records["total"] {
				verdict += ": CAME BETWEEN"
				mu.Lock()
				wrong++
				mu.Unlock()
			}
			rows[i] = fmt.Sprintf("  %-8s %8s %8s   %s\n", j.OrderID, records["charged"], records["total"], verdict)
		})
	}
	customers.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	fmt.Printf("\n%s:\n\n  %-8s %8s %8s   %s\n", title, "order", "charged", "costs", "the item")
	for _, row := range rows {
		fmt.Print(row)
	}
	fmt.Printf("\n  %d orders went wrong; done after %v\n", wrong, time.Since(began).Round(time.Millisecond))
	return wrong, nil
}

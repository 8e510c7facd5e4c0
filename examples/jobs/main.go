// Jobs takes payment requests over HTTP, several for each order, and has two
// workers pay them, first without a lock, then with one. Each job prints a line
// when it is done. Then orders are bought, and changed meanwhile: first with a lock that ends
// with the request, then with one that is handed over to the job, until that is done.
//
//	go run ./examples/jobs                        # on an embedded Redis
//	go run ./examples/jobs -redis localhost:6379  # on a real one
//
// With a real one the workers can be processes of their own. In three terminals:
//
//	go run ./examples/jobs -redis localhost:6379 -role worker -name east
//	go run ./examples/jobs -redis localhost:6379 -role worker -name west
//	go run ./examples/jobs -redis localhost:6379 -role shop
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/examples/internal/start"
)

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	role      = flag.String("role", "all", "worker: handle jobs until interrupted; shop: take requests; all: a shop and two workers")
	name      = flag.String("name", "worker "+strconv.Itoa(os.Getpid()), "name of a worker")
	orders    = flag.Int("orders", 5, "orders to pay")
	requests  = flag.Int("requests", 6, "requests for each order, all at once")
)

const queue = "latchkey-example-jobs"

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("jobs: ", err)
	}
}

func run(ctx context.Context) error {
	switch {
	case *orders < 1 || *requests < 1:
		return errors.New("-orders and -requests must be at least 1")
	case *role != "all" && *role != "shop" && *role != "worker":
		return fmt.Errorf("-role is %q, not all, shop or worker", *role)
	case *redisAddr == "" && *role != "all":
		return errors.New("a -role of its own needs -redis: processes share no embedded one")
	}
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
	defer locker.Close(context.WithoutCancel(ctx)) // after the workers have been shut down
	core.SetDefault(locker)

	workers := map[string][]string{"all": {"east", "west"}, "worker": {*name}}
	for _, name := range workers[*role] {
		server, err := startWorker(client, name)
		if err != nil {
			return err
		}
		defer server.Shutdown()
	}
	if *role == "worker" {
		fmt.Println(*name, "is waiting for jobs, until interrupted")
		<-ctx.Done()
		return nil
	}
	return runShop(ctx, client)
}

// job is the payload of a task.
type job struct {
	Run     string `json:"run"` // keeps the records of two runs of this program apart
	OrderID string `json:"orderID"`
	Total   int    `json:"total,omitempty"` // what the order cost at the click
}

// startWorker is what a worker process does.
func startWorker(client *redis.Client, name string) (*asynq.Server, error) {
	w := &worker{client: client, name: name}
	mux := asynq.NewServeMux()
	mux.HandleFunc("pay:unsafe", w.pay)

	// One line: of all jobs for one order, one at a time runs, whichever worker
	// gets it.
	mux.Handle("pay", asynqlock.ByPayload("orderID")(asynq.HandlerFunc(w.pay)))

	// The same line takes a lock that was handed over to the job.
	mux.Handle("settle", asynqlock.ByPayload("orderID")(asynq.HandlerFunc(w.settle)))

	// And a job whose order stays busy is put off for a moment, which is no failure.
	config := asynq.Config{
		Queues:                   map[string]int{queue: 1},
		Concurrency:              8,
		TaskCheckInterval:        50 * time.Millisecond,
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return time.Second },
		LogLevel:                 asynq.ErrorLevel,
	}
	asynqlock.Configure(&config)
	config.ErrorHandler = asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
		if errors.Is(err, errBank) {
			return
		}
		var j job
		if config.IsFailure(err) || json.Unmarshal(t.Payload(), &j) != nil {
			log.Printf("%s: a job failed: %v", name, err)
			return
		}
		client.HIncrBy(ctx, j.records(), "put off", 1)
	})
	server := asynq.NewServerFromRedisClient(client, config)
	return server, server.Start(mux)
}

type worker struct {
	client *redis.Client
	name   string
}

// pay handles a job, and writes down how many jobs of its order run with it.
func (w *worker) pay(ctx context.Context, t *asynq.Task) error {
	var j job
	if err := json.Unmarshal(t.Payload(), &j); err != nil {
		return fmt.Errorf("%w: %w", asynq.SkipRetry, err)
	}
	began := time.Now()
	running, err := w.client.HIncrBy(ctx, j.records(), "running", 1).Result()
	if err != nil {
		return err
	}
	outcome, err := w.charge(ctx, j)
	records := w.client.TxPipeline()
	records.HSet(ctx, j.records(), fmt.Sprint("at once: ", running), "yes")
	records.HIncrBy(ctx, j.records(), "running", -1)
	if err == nil {
		records.HIncrBy(ctx, j.records(), "jobs", 1)
		fmt.Printf("  %s to %s  %-5s order %s: %s\n",
			began.Format("15:04:05.000"), time.Now().Format("05.000"), w.name, j.OrderID, outcome)
	}
	_, failure := records.Exec(ctx)
	return errors.Join(err, failure)
}

// charge looks whether an order is paid, has the bank charge for it and writes down
// that it is paid, in steps, as real handlers do. Two that run at once charge twice.
func (w *worker) charge(ctx context.Context, j job) (outcome string, err error) {
	paid, err := w.client.HExists(ctx, j.records(), "paid").Result()
	if err != nil || paid {
		return "was paid already", err
	}
	time.Sleep(50 * time.Millisecond) // the bank
	if err := w.client.HIncrBy(ctx, j.records(), "charges", 1).Err(); err != nil {
		return "", err
	}
	return "PAID", w.client.HSet(ctx, j.records(), "paid", "yes").Err()
}

// records is the key of a hash with all that is known about an order.
func (j job) records() string { return queue + ":" + j.Run + ":" + j.OrderID }

// newShop puts a job into the queue for each request, and looks no further.
func newShop(client *redis.Client) http.Handler {
	jobs := asynq.NewClientFromRedisClient(client)
	mux := http.NewServeMux()
	(&checkout{client, jobs}).handle(mux)
	mux.HandleFunc("POST /orders/{id}/{task}", func(w http.ResponseWriter, r *http.Request) {
		payload, err := json.Marshal(job{Run: r.FormValue("run"), OrderID: r.PathValue("id")})
		if err == nil {
			_, err = jobs.EnqueueContext(r.Context(), asynq.NewTask(r.PathValue("task"), payload), asynq.Queue(queue))
		}
		reply(w, err)
	})
	return mux
}

func reply(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// runShop takes the requests, and sees to it that they come.
func runShop(ctx context.Context, client *redis.Client) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	shop := &http.Server{Handler: newShop(client), ReadHeaderTimeout: 5 * time.Second}
	defer shop.Close()
	go shop.Serve(listener)

	if _, err := burst(ctx, client, listener.Addr().String(), "Without lock", "pay:unsafe"); err != nil {
		return err
	}
	wrong, err := burst(ctx, client, listener.Addr().String(), "With lock", "pay")
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d orders went wrong in spite of the lock", wrong)
	}
	if err != nil {
		return err
	}
	return compareCheckouts(ctx, client, listener.Addr().String())
}

//go:build go1.25

// Reentry shows what a reentrant lock is, and what entering it again costs:
// placeOrder calls reserveStock, which calls writeAudit. Each of them locks the order
// by itself, because each is also used alone, and whoever holds the lock comes in.
// It costs what an acquisition costs that waits for nobody.
//
//	go run ./examples/reentry                        # on an embedded Redis
//	go run ./examples/reentry -redis localhost:6379  # on a real one
//	go run ./examples/reentry -callers 20 -depth 5
//
// It exits with 1 if somebody came in between the levels of another one. This file is
// the program; what is written down and checked is in record.go, what is printed in
// show.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/examples/internal/start"
)

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	callers   = flag.Int("callers", 20, "callers who want the same order at once")
	depth     = flag.Int("depth", 5, "how many levels deep each of them enters its lock")
)

const (
	alone   = 100 // orders of the caller who has nobody beside it
	servers = 2   // that the callers are spread over
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("reentry: ", err)
	}
}

func run(ctx context.Context) error {
	switch {
	case *callers < 1 || *callers > 1000:
		return fmt.Errorf("-callers must be 1 to 1000, not %d", *callers)
	case *depth < 1 || *depth > 50:
		return fmt.Errorf("-depth must be 1 to 50, not %d", *depth)
	}
	addr, stop, err := start.Redis(ctx, *redisAddr)
	if err != nil {
		return err
	}
	defer stop()

	// Each server has a client and a Locker of its own, as a process would.
	var lockers [servers]*core.Locker
	var client *redis.Client
	for i := range lockers {
		client = redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		defer client.Close()
		var err error
		if lockers[i], err = core.New(client); err != nil {
			return err
		}
		defer lockers[i].Close(context.WithoutCancel(ctx))
	}

	key := "order:" + strconv.FormatInt(time.Now().UnixNano(), 36) // none that another run has
	audit := &auditLog{client: client, name: "reentry:" + key}
	defer audit.remove(context.WithoutCancel(ctx))

	one, err := oneCaller(ctx, lockers[0], key, audit)
	if err != nil {
		return err
	}
	many, err := manyCallers(ctx, lockers[:], key, audit)
	if err != nil {
		return err
	}
	showCosts(one, many)
	return audit.check(ctx)
}

// caller is who places an order, or one of its parts.
type caller struct {
	number, server int
	locker         *core.Locker
	key            string
	audit          *auditLog
	levels         []level // the outermost first
}

// placeOrder has two steps that must not be parted, so it locks the order around both.
func (c *caller) placeOrder(ctx context.Context) error {
	defer c.enter("placeOrder")()
	return c.locker.Do(ctx, c.key, func(ctx context.Context) error {
		return c.inside(ctx, c.reserveStock)
	})
}

// reserveStock is also called when an order is changed. With the ctx that it was given
// it enters the lock of its caller; without a lock there it takes one.
func (c *caller) reserveStock(ctx context.Context) error {
	defer c.enter("reserveStock")()
	return c.locker.Do(ctx, c.key, func(ctx context.Context) error {
		return c.inside(ctx, c.writeAudit)
	})
}

// writeAudit is called by everything. It calls itself for the entry that its own
// refers to, as deep as -depth says.
func (c *caller) writeAudit(ctx context.Context) error {
	defer c.enter("writeAudit")()
	return c.locker.Do(ctx, c.key, func(ctx context.Context) error {
		return c.inside(ctx, c.writeAudit)
	})
}

// oneCaller places orders with nobody beside it, and tries the parts alone.
func oneCaller(ctx context.Context, locker *core.Locker, key string, audit *auditLog) ([]*caller, error) {
	var all []*caller
	for range alone {
		c := &caller{locker: locker, key: key, audit: audit}
		if err := c.placeOrder(ctx); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	part := &caller{locker: locker, key: key, audit: audit}
	if err := part.writeAudit(ctx); err != nil {
		return nil, err
	}
	refusal, err := asStranger(ctx, locker, key)
	if err != nil {
		return nil, err
	}
	showOne(all[len(all)-1], part, refusal)
	return all, nil
}

// asStranger has a holder ask for its own lock with a context that carries no
// ownership: what every call would be if the lock were not reentrant. Without NoWait it
// would wait for itself for ever. It returns the refusal.
func asStranger(ctx context.Context, locker *core.Locker, key string) (refusal, err error) {
	err = locker.Do(ctx, key, func(ctx context.Context) error {
		refusal = locker.Do(core.Detach(ctx), key, func(context.Context) error { return nil }, core.NoWait())
		return nil
	})
	if err == nil && !errors.Is(refusal, core.ErrNotAcquired) {
		err = fmt.Errorf("a stranger was let in beside the holder: %v", refusal)
	}
	return refusal, err
}

// manyCallers lets all callers place the same order at once.
func manyCallers(ctx context.Context, lockers []*core.Locker, key string, audit *auditLog) ([]*caller, error) {
	all := make([]*caller, *callers)
	failures := make([]error, *callers)
	began := time.Now()
	var crowd sync.WaitGroup
	for i := range all {
		server := i % len(lockers)
		all[i] = &caller{number: i + 1, server: server + 1, locker: lockers[server], key: key, audit: audit}
		crowd.Go(func() { failures[i] = all[i].placeOrder(ctx) })
	}
	crowd.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	showMany(began, all)
	return all, nil
}

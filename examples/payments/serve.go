package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/examples/internal/start"
)

var (
	prefix  = flag.String("prefix", "latchkey-example-payments:", "of all keys in Redis")
	lease   = flag.Duration("lease", 30*time.Second, "of the locks")
	happens = flag.String("happens", "", "with -serve, what happens at a step: die, or pause until a line of input; list: steps are printed")
	at      = flag.Int("at", 0, "the number of that step, from 1 on")
)

// serve is a server process, whose first line is where it serves.
func serve(ctx context.Context, addr, database string) error {
	steps := &steps{happens: happening(*happens), at: *at}
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil { // now, so that connecting is no step
		return err
	}
	db, err := open(ctx, database, steps)
	if err != nil {
		return err
	}
	defer db.Close()
	logger := slog.Default()
	if steps.happens != nothing {
		client.AddHook(steps)
		logger = slog.New(slog.DiscardHandler)
	}
	locker, err := core.New(client, core.Prefix(*prefix), core.Lease(*lease), core.Logger(logger))
	if err != nil {
		return err
	}
	defer locker.Close(context.WithoutCancel(ctx))
	shop := newShop(locker, db, logger)
	if steps.happens != nothing {
		shop = steps.handler(shop)
	}
	listener, url, err := start.Listen(*serveAt)
	if err != nil {
		return err
	}
	fmt.Println(url)
	if steps.happens == nothing {
		fmt.Printf("serves until interrupted. Try, twice:\n  curl -i -u ann: -H 'Idempotency-Key: 1' -d 60 %s/orders/42/payments\n", url)
	}
	return start.Serve(ctx, listener, shop)
}

// open opens a database that has the tables, and the order 42.
func open(ctx context.Context, database string, steps *steps) (*sql.DB, error) {
	name, dsn := "pgx", database
	if !strings.Contains(database, "://") {
		name, dsn = "sqlite", "file:"+filepath.ToSlash(database)+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	}
	db, err := sql.Open(name, dsn)
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, schema)
	if err == nil {
		err = placeOrder(ctx, db, "42")
	}
	if err == nil && steps.happens != nothing {
		plain := db
		db = sql.OpenDB(connector{plain.Driver(), dsn, steps})
		err = plain.Close()
	}
	return db, err
}

// price is what each order costs.
const price = 100

func placeOrder(ctx context.Context, db *sql.DB, id string) error {
	_, err := db.ExecContext(ctx, `INSERT INTO orders (id, total) VALUES ($1, $2) ON CONFLICT DO NOTHING`, id, price)
	return err
}

// Payments has orders paid exactly once, with a database. The server dies at each step of a payment, from the request
// to the answer, and the client sends it again with the same Idempotency-Key, until it is answered. Then the server
// stops at each step, and Redis loses its locks meanwhile: another server processes the same request at once, or
// another payment of the same order.
//
//	go run -C examples/payments .                                    # on an embedded Redis and SQLite
//	go run -C examples/payments . -db postgres://shop@localhost/shop # on PostgreSQL
//	go run -C examples/payments . -serve :8080                       # serves until interrupted, for curl
//
// pay.go is what a service needs in its database, and shop.go what stands before it. It exits with 1 if an order was
// not paid once.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/latchkey-go/latchkey/examples/internal/start"
)

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	database  = flag.String("db", "", "URL of a PostgreSQL database, or a file of SQLite; empty: such files in a temporary folder")
	serveAt   = flag.String("serve", "", "address to serve at until interrupted, such as :8080")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("payments: ", err)
	}
}

func run(ctx context.Context) error {
	addr, stop, err := start.Redis(ctx, *redisAddr)
	if err != nil {
		return err
	}
	defer stop()
	folder := ""
	if *database == "" {
		if folder, err = os.MkdirTemp("", "payments"); err != nil {
			return err
		}
		defer os.RemoveAll(folder)
	}
	r := rehearsal{redis: addr, database: *database, folder: folder}
	if *serveAt != "" {
		return serve(ctx, addr, r.databaseOf("shop"))
	}
	return rehearse(ctx, r)
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// newShop has a request with an Idempotency-Key processed by one at a time, and one payment of an order made at a time.
func newShop(locker *core.Locker, db *sql.DB, logger *slog.Logger) http.Handler {
	guards := httplock.With(locker)
	once := guards.Idempotent(keyfunc.Value(userKey{}), core.Wait(5*time.Second))
	alone := guards.ByParam("orderID")
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderID}/payments", authenticate(once(alone(pay(db, logger)))))
	return mux
}

// pay translates between HTTP and payOnce.
func pay(db *sql.DB, logger *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context() // ends when the lock is lost
		p := payment{Order: r.PathValue("orderID")}
		amount, err := io.ReadAll(r.Body)
		if err == nil {
			p.Amount, err = strconv.ParseInt(string(amount), 10, 64)
		}
		if err != nil || p.Amount <= 0 {
			http.Error(w, "what amount?", http.StatusBadRequest)
			return
		}
		p.User = ctx.Value(userKey{}).(string)
		p.Request, _ = httplock.IdempotencyKey(ctx) // the same in each spelling
		lock, held := core.FromContextKey(ctx, keyfunc.Key("orderID", p.Order))
		if !held {
			http.Error(w, "the order is not locked", http.StatusInternalServerError)
			return
		}
		p, err = payOnce(ctx, db, p, lock.Token())
		switch {
		case errors.Is(err, errNoOrder):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, errTooMuch):
			http.Error(w, err.Error(), http.StatusGone)
		case errors.Is(err, errReused):
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		case err != nil: // not stored: the next request with the key is processed
			logger.WarnContext(ctx, "nobody knows whether this was paid", "order", p.Order, "error", err)
			http.Error(w, "nobody knows yet: send it again", http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "paid %d of order %s, receipt %s\n", p.Amount, p.Order, p.Receipt)
		}
	}
}

type userKey struct{}

// authenticate stands for that of a real shop.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, ok := r.BasicAuth()
		if !ok {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

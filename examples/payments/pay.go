package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
)

// schema is that of PostgreSQL, and of SQLite. A request is one row of payments, by its key; the key is the user's,
// because clients choose them.
const schema = `
CREATE TABLE IF NOT EXISTS orders (
	id    TEXT PRIMARY KEY,
	total BIGINT NOT NULL,
	paid  BIGINT NOT NULL DEFAULT 0,
	fence BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS payments (
	user_id    TEXT NOT NULL,
	request_id TEXT NOT NULL,
	order_id   TEXT NOT NULL REFERENCES orders,
	amount     BIGINT NOT NULL,
	receipt    TEXT NOT NULL,
	PRIMARY KEY (user_id, request_id)
);`

// payment is a row of payments. The answer is made of nothing else, so that it can be made again.
type payment struct {
	User, Request, Order string
	Amount               int64
	Receipt              string // empty: it was not made
}

var (
	errNoOrder = errors.New("there is no such order")
	errTooMuch = errors.New("less than that is due")
	errReused  = errors.New("the key belongs to another payment")
	errStale   = errors.New("a later holder of the lock has the order")
)

// payOnce makes a payment, or returns it as an earlier attempt has made it. token is that of the order's lock. After
// other errors than the first three above nobody knows whether it was made: the next attempt finds out.
func payOnce(ctx context.Context, db *sql.DB, p payment, token int64) (payment, error) {
	due, err := raiseFence(ctx, db, p.Order, token)
	if err != nil {
		return p, err
	}
	if made, err := look(ctx, db, p); err != nil || made.Receipt != "" {
		return made, err
	}
	if p.Amount > due {
		return p, errTooMuch
	}
	// A bank is not asked here: it would have the money of a payment that is refused when another one comes between. It is
	// asked after the transaction, whose row has no receipt yet, with a key that follows from user and request; who finds
	// such a row asks again.
	p.Receipt = rand.Text()
	return record(ctx, db, p, token)
}

// raiseFence returns what is due. From then on no earlier holder of the lock can change the order: it must not do so
// after it was read, either.
func raiseFence(ctx context.Context, db *sql.DB, order string, token int64) (due int64, err error) {
	var fence int64
	err = db.QueryRowContext(ctx, `UPDATE orders SET fence = CASE WHEN fence < $1 THEN $1 ELSE fence END
		WHERE id = $2 RETURNING fence, total - paid`, token, order).Scan(&fence, &due)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, errNoOrder
	case err == nil && fence != token:
		return 0, errStale
	}
	return due, err
}

// record is the transaction. Its INSERT waits for an attempt that is just committing.
func record(ctx context.Context, db *sql.DB, p payment, token int64) (payment, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return p, err
	}
	defer tx.Rollback()
	isNew, err := changes(tx.ExecContext(ctx, `INSERT INTO payments (user_id, request_id, order_id, amount, receipt)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`, p.User, p.Request, p.Order, p.Amount, p.Receipt))
	if err != nil {
		return p, err
	}
	if !isNew {
		return look(ctx, tx, p)
	}
	isMine, err := changes(tx.ExecContext(ctx, `UPDATE orders SET paid = paid + $1
		WHERE id = $2 AND fence <= $3`, p.Amount, p.Order, token))
	if err != nil {
		return p, err
	}
	if !isMine {
		return p, errStale
	}
	return p, tx.Commit() // its error does not say that nothing was committed
}

// changes reports whether a statement has changed a row.
func changes(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// look returns a payment as it was made.
func look(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, p payment) (payment, error) {
	made := payment{User: p.User, Request: p.Request}
	err := db.QueryRowContext(ctx, `SELECT order_id, amount, receipt FROM payments
		WHERE user_id = $1 AND request_id = $2`, p.User, p.Request).Scan(&made.Order, &made.Amount, &made.Receipt)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return made, nil
	case err == nil && (made.Order != p.Order || made.Amount != p.Amount):
		return made, errReused
	}
	return made, err
}

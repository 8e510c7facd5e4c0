package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/examples/internal/start"
	"github.com/latchkey-go/latchkey/locktest"
)

// The servers that a test starts are this program again.
func TestMain(m *testing.M) {
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(arg, "-serve=") {
			main()
			return
		}
	}
	os.Exit(m.Run())
}

// The program itself checks what came of it.
func TestRun(t *testing.T) {
	if err := run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// newTestTrial is a trial on an embedded Redis, and on a database of SQLite unless one is given.
func newTestTrial(t *testing.T, database string) *trial {
	t.Helper()
	addr, stop, err := start.Redis(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	trial, err := rehearsal{redis: addr, database: database, folder: t.TempDir()}.newTrial(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trial.close)
	return trial
}

// ask returns the answer to one request.
func ask(t *testing.T, c customer, url string) answer {
	t.Helper()
	a, _, err := c.askOnce(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnswers(t *testing.T) {
	trial := newTestTrial(t, "")
	forget := func() {
		if err := trial.forgetLocks(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pays := ann.of(trial.order)
	first := ask(t, pays, trial.healthy.URL)
	if !first.isPaid() {
		t.Fatal(first)
	}
	quoted := pays
	quoted.key = `"` + pays.key + `"`
	for _, same := range []customer{pays, quoted} {
		forget()
		if again := ask(t, same, trial.healthy.URL); again != first {
			t.Errorf("first %v, and %v when Redis had forgotten it", first, again)
		}
	}

	dearer, elsewhere, bobs, unknown := pays, pays, pays, bob.of("unknown")
	dearer.amount, elsewhere.order = 70, "42"
	bobs.name, bobs.amount = "bob", 40
	for _, c := range []struct {
		of   customer
		want int
	}{
		{bob.of(trial.order), http.StatusGone},
		{dearer, http.StatusUnprocessableEntity},
		{elsewhere, http.StatusUnprocessableEntity},
		{bobs, http.StatusCreated}, // the key of another user is another key
		{unknown, http.StatusNotFound},
	} {
		forget()
		if a := ask(t, c.of, trial.healthy.URL); a.status != c.want {
			t.Errorf("%+v: %v, want %d", c.of, a, c.want)
		}
	}
}

// Without its database the shop says that it does not know, and the log why.
func TestDatabaseDown(t *testing.T) {
	db, err := open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), new(steps))
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	var log bytes.Buffer
	shop := newShop(locktest.New(t), db, slog.New(slog.NewTextHandler(&log, nil)))
	request := httptest.NewRequest(http.MethodPost, "/orders/42/payments", strings.NewReader("60"))
	request.SetBasicAuth("ann", "")
	request.Header.Set("Idempotency-Key", "1")
	got := httptest.NewRecorder()
	shop.ServeHTTP(got, request)
	if got.Code != http.StatusServiceUnavailable || strings.Contains(got.Body.String(), "database") {
		t.Errorf("%d %q", got.Code, got.Body)
	}
	if !strings.Contains(log.String(), "order=42") || !strings.Contains(log.String(), "database is closed") {
		t.Errorf("log %q", log.String())
	}
}

// Two attempts with one key have come as far as the transaction, each under another lock.
func TestAKeyIsOnePayment(t *testing.T) {
	trial := newTestTrial(t, "")
	p := payment{User: "ann", Request: "1", Order: trial.order, Amount: 10, Receipt: "first"}
	again, other := p, p
	again.Receipt = "second"
	other.Order = "42"
	for _, c := range []struct {
		asked payment
		want  string
		err   error
	}{{p, "first", nil}, {again, "first", nil}, {other, "", errReused}} {
		made, err := record(t.Context(), trial.db, c.asked, 1)
		if err != c.err || err == nil && made.Receipt != c.want {
			t.Errorf("%+v: %+v, %v; want receipt %s, %v", c.asked, made, err, c.want, c.err)
		}
	}
	if err := trial.check(t.Context(), map[string]answer{"ann": {status: http.StatusCreated, body: "first"}}); err != nil {
		t.Error(err)
	}
}

// A later holder has read the order; then an earlier one, which does not know, comes to its transaction.
func TestAnEarlierHolderIsRefused(t *testing.T) {
	trial := newTestTrial(t, "")
	if _, err := raiseFence(t.Context(), trial.db, trial.order, 2); err != nil {
		t.Fatal(err)
	}
	p := payment{User: "ann", Request: "1", Order: trial.order, Amount: 10, Receipt: "late"}
	if _, err := record(t.Context(), trial.db, p, 1); err != errStale {
		t.Errorf("the transaction: %v", err)
	}
	if _, err := raiseFence(t.Context(), trial.db, trial.order, 1); err != errStale {
		t.Errorf("its fence: %v", err)
	}
	if made, err := record(t.Context(), trial.db, p, 2); err != nil || made != p {
		t.Errorf("the later holder: %+v, %v", made, err)
	}
}

// A check that sees nothing would let everything pass.
func TestTheCheckSees(t *testing.T) {
	trial := newTestTrial(t, filepath.Join(t.TempDir(), "shop.db"))
	check := func(what string, answers map[string]answer, wants bool) {
		if err := trial.check(context.Background(), answers); (err != nil) != wants {
			t.Errorf("%s: %v", what, err)
		}
	}
	paid := answer{status: http.StatusCreated, body: "receipt r1"}
	exec := func(query string) {
		if _, err := trial.db.ExecContext(t.Context(), query, trial.order); err != nil {
			t.Fatal(err)
		}
	}
	check("a payment that is lost", map[string]answer{"ann": paid}, true)
	exec(`INSERT INTO payments (user_id, request_id, order_id, amount, receipt) VALUES ('ann', '1', $1, 60, 'r1')`)
	check("a sum that is lost", map[string]answer{"ann": paid}, true)
	exec(`UPDATE orders SET paid = 60 WHERE id = $1`)
	check("one payment", map[string]answer{"ann": paid}, false)
	check("a payment that nobody was told of", map[string]answer{"ann": {status: http.StatusGone}}, true)
	check("another receipt", map[string]answer{"ann": {status: http.StatusCreated, body: "receipt r2"}}, true)
	exec(`INSERT INTO payments (user_id, request_id, order_id, amount, receipt) VALUES ('bob', '1', $1, 60, 'r1')`)
	exec(`UPDATE orders SET paid = 120 WHERE id = $1`)
	check("paid too much", map[string]answer{"ann": paid, "bob": paid}, true)
}

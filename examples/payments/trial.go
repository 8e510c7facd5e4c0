package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// trial is an order, in a shop of two servers: one is a process to which something happens, the other is healthy.
type trial struct {
	rehearsal
	order, prefix, database string

	client  *redis.Client
	locker  *core.Locker
	db      *sql.DB
	healthy *httptest.Server
}

func (r rehearsal) newTrial(ctx context.Context, name string) (*trial, error) {
	t := &trial{rehearsal: r, order: name + "-" + rand.Text(), database: r.databaseOf(name)}
	t.prefix = "latchkey-example-payments-" + t.order + ":"
	db, err := open(ctx, t.database, new(steps))
	if err != nil {
		return nil, err
	}
	if err := placeOrder(ctx, db, t.order); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	t.client = redis.NewClient(&redis.Options{Addr: r.redis, ContextTimeoutEnabled: true})
	locker, err := core.New(t.client, core.Prefix(t.prefix), core.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, errors.Join(err, db.Close(), t.client.Close())
	}
	t.db, t.locker, t.healthy = db, locker, httptest.NewServer(newShop(locker, db, slog.New(slog.DiscardHandler)))
	return t, nil
}

func (t *trial) close() {
	t.healthy.Close()
	_ = t.locker.Close(context.Background())
	_ = t.client.Close()
	_ = t.db.Close()
}

// forgetLocks has Redis forget all that it knows of this trial, as after a failover that lost it. That takes more time than a step of
// the clock of Redis, from which the next token is: an embedded Redis has steps of milliseconds.
func (t *trial) forgetLocks(ctx context.Context) error {
	began, err := t.client.Time(ctx).Result()
	for now := began; err == nil && !now.After(began); {
		now, err = t.client.Time(ctx).Result()
	}
	if err != nil {
		return err
	}
	keys := t.client.Scan(ctx, 0, t.prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := t.client.Del(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}

// check holds the answers that counted, by customer, against the database.
func (t *trial) check(ctx context.Context, answers map[string]answer) error {
	var total, paid int
	if err := t.db.QueryRowContext(ctx, `SELECT total, paid FROM orders WHERE id = $1`, t.order).Scan(&total, &paid); err != nil {
		return err
	}
	rows, err := t.db.QueryContext(ctx, `SELECT user_id, amount, receipt FROM payments WHERE order_id = $1`, t.order)
	if err != nil {
		return err
	}
	defer rows.Close()
	var errs []error
	sum, payments := 0, map[string]int{}
	for rows.Next() {
		var user, receipt string
		var amount int
		if err := rows.Scan(&user, &amount, &receipt); err != nil {
			return err
		}
		sum += amount
		payments[user]++
		if !strings.Contains(answers[user].body, receipt) {
			errs = append(errs, fmt.Errorf("%s has paid with receipt %s, and was answered %q", user, receipt, answers[user].body))
		}
	}
	for user, a := range answers {
		if a.isPaid() && payments[user] != 1 || !a.isPaid() && payments[user] != 0 {
			errs = append(errs, fmt.Errorf("%s was answered %d, and has paid %d times", user, a.status, payments[user]))
		}
	}
	if sum != paid || sum > total || sum == 0 {
		errs = append(errs, fmt.Errorf("the order costs %d, says that %d are paid, and the payments are %d", total, paid, sum))
	}
	return errors.Join(append(errs, rows.Err())...)
}

// process is a server.
type process struct {
	url   string
	lines <-chan string // what it has printed since, until it ends
	input io.WriteCloser
	cmd   *exec.Cmd
}

// startServer starts this program once more, as a server.
func (t *trial) startServer(ctx context.Context, happens happening, at int) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	lease := 30 * time.Second // a lock that is lost is not noticed before the server goes on
	if happens == dying {
		lease = time.Second // for so long the key of a server that died is taken
	}
	cmd := exec.CommandContext(ctx, program, "-serve=127.0.0.1:0", "-redis="+t.redis, "-db="+t.database, "-prefix="+t.prefix,
		"-lease="+lease.String(), "-happens="+string(happens), "-at="+strconv.Itoa(at))
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for text := bufio.NewScanner(output); text.Scan(); {
			lines <- text.Text()
		}
	}()
	p := &process{lines: lines, input: input, cmd: cmd}
	p.url = <-lines
	if !strings.HasPrefix(p.url, "http://") {
		p.stop()
		return nil, fmt.Errorf("the server has said %q", p.url)
	}
	return p, nil
}

// goOn has a server that has stopped go on.
func (p *process) goOn() { _, _ = fmt.Fprintln(p.input) }

func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	for range p.lines {
	}
	_ = p.cmd.Wait()
}

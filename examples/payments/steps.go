package main

import (
	"bufio"
	"context"
	"database/sql/driver"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// steps are what a server does, one after the other: a command to Redis, a statement to the database, the answer.
// Each is two steps, before and after it, and at one of them something happens. Nothing here is needed in a program
// that is not tried out.
type steps struct {
	happens happening
	at      int // counts from 1

	mu   sync.Mutex
	seen int
}

type happening string

const (
	nothing happening = ""
	listing happening = "list"  // the steps are printed
	dying   happening = "die"   // the process is killed
	pausing happening = "pause" // the request goes on after a line of input
)

func (s *steps) reach(name string) {
	s.mu.Lock()
	s.seen++
	isHere := s.seen == s.at
	if isHere || s.happens == listing {
		fmt.Println(name)
	}
	s.mu.Unlock()
	switch {
	case isHere && s.happens == dying:
		die()
	case isHere && s.happens == pausing:
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
}

// die has nothing of this process run any more, what runs at an exit included.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err != nil || self.Kill() != nil {
		panic("this process cannot be killed")
	}
	select {}
}

const lastStep = "after the answer is sent"

// around reaches the steps of something that is done.
func around[T any](s *steps, what string, do func() (T, error)) (T, error) {
	s.reach("before " + what)
	result, err := do()
	s.reach("after " + what)
	return result, err
}

// handler reaches the steps of a request and its answer.
func (s *steps) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.reach("the request has come")
		next.ServeHTTP(&stepWriter{ResponseWriter: w, steps: s}, r)
		s.reach("before the answer is sent")
		_ = http.NewResponseController(w).Flush()
		s.reach(lastStep)
	})
}

type stepWriter struct {
	http.ResponseWriter
	steps *steps
}

func (w *stepWriter) WriteHeader(status int) {
	w.steps.reach("before the answer is written")
	w.ResponseWriter.WriteHeader(status)
}

func (w *stepWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// DialHook, ProcessHook and ProcessPipelineHook reach the steps of Redis.
func (s *steps) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *steps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_, err := around(s, nameOf(cmd), func() (struct{}, error) { return struct{}{}, next(ctx, cmd) })
		return err
	}
}

func (s *steps) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		_, err := around(s, nameOf(cmds[0]), func() (struct{}, error) { return struct{}{}, next(ctx, cmds) })
		return err
	}
}

func nameOf(cmd redis.Cmder) string {
	name := strings.ToUpper(cmd.Name())
	switch text := fmt.Sprint(cmd.Args()...); {
	case strings.Contains(text, "idempotent:"):
		name += " for the key"
	case strings.Contains(text, "orderID="):
		name += " for the order"
	}
	return name
}

// connector connects to a database whose steps are reached.
type connector struct {
	driver driver.Driver
	dsn    string
	steps  *steps
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	return &stepConn{conn, c.steps}, err
}

type stepConn struct {
	driver.Conn
	steps *steps
}

func (c *stepConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return around(c.steps, "BEGIN", func() (driver.Tx, error) {
		tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
		return &stepTx{tx, c.steps}, err
	})
}

func (c *stepConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return around(c.steps, firstWord(query), func() (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	})
}

func (c *stepConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return around(c.steps, firstWord(query), func() (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	})
}

type stepTx struct {
	driver.Tx
	steps *steps
}

func (t *stepTx) Commit() error {
	_, err := around(t.steps, "COMMIT", func() (struct{}, error) { return struct{}{}, t.Tx.Commit() })
	return err
}

func firstWord(query string) string {
	word, _, _ := strings.Cut(query, " ")
	return word
}

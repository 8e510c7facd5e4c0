package conformance_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A refusal is cheap to provoke: it must not make Redis send an answer that is stored. Only a request that
// gets the answer does.
func TestRefusalsDoNotLoadStoredAnswers(t *testing.T) {
	server := redistest.Start(t)
	var read atomic.Int64
	dial := net.Dialer{}
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial.DialContext(ctx, network, addr)
		return &countedConn{conn, &read}, err
	}})
	t.Cleanup(func() { _ = client.Close() })
	const size = 60_000
	for _, f := range frameworks {
		t.Run(f.name, func(t *testing.T) {
			locker, err := core.New(client, core.Prefix(f.name+":"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = locker.Close(context.Background()) })
			core.SetDefault(locker)
			t.Cleanup(func() { core.SetDefault(nil) })
			h := &harness{T: t, framework: f, locker: locker, log: captureLog(t)}
			s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Stream") != "" {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				fmt.Fprint(w, strings.Repeat("x", size))
			})
			for _, c := range []struct {
				does   string
				key    string
				header []string
				body   string
				status int
				loads  bool
			}{
				{does: "is processed", key: "k", body: "a", status: http.StatusOK},
				{does: "is repeated", key: "k", body: "a", status: http.StatusOK, loads: true},
				{does: "is another one", key: "k", body: "b", status: http.StatusUnprocessableEntity},
				{does: "is processed, with a stream", key: "s", header: []string{"X-Stream", "1"}, body: "a", status: http.StatusOK},
				{does: "cannot be replayed", key: "s", body: "a", status: http.StatusConflict},
			} {
				before := read.Load()
				h.wantStatus(s.order(c.key, c.body, c.header...), c.status)
				if n := read.Load() - before; (n > size) != c.loads || !c.loads && n > 2000 {
					t.Errorf("a request that %s: Redis has sent %d bytes", c.does, n)
				}
			}
			s.wantRuns(2)
		})
	}
}

// countedConn counts the bytes that arrive.
type countedConn struct {
	net.Conn
	read *atomic.Int64
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

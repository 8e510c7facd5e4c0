//go:build unix

package main

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// A connection is cut at COMMIT: its server cannot know what became of it, and the next attempt finds out.
func TestPostgresIsCutOffAtCommit(t *testing.T) {
	folder, database := startPostgres(t)
	for _, c := range []struct {
		name string
		fate fate
	}{
		{"the COMMIT does not arrive", lost},
		{"the COMMIT arrives", arrives},
		{"the COMMIT arrives when the next attempt is in its way", arrivesLate},
	} {
		t.Run(c.name, func(t *testing.T) {
			trial := newTestTrial(t, database)
			proxy := startProxy(t, folder, c.fate)
			cut, err := open(t.Context(), databaseAt(proxy.folder), new(steps))
			if err != nil {
				t.Fatal(err)
			}
			defer cut.Close()
			server := httptest.NewServer(newShop(trial.locker, cut, slog.New(slog.DiscardHandler)))
			defer server.Close()
			pays := ann.of(trial.order)
			if a := ask(t, pays, server.URL); a.status != http.StatusServiceUnavailable {
				t.Fatalf("the first attempt was answered %v", a)
			}

			var before string // the receipt that is committed so far
			committed := func() string {
				made, err := look(t.Context(), trial.db, payment{User: pays.name, Request: pays.key, Order: pays.order, Amount: int64(pays.amount)})
				if err != nil {
					t.Fatal(err)
				}
				return made.Receipt
			}
			if c.fate == arrives {
				await(t, "the commit", func() bool { before = committed(); return before != "" })
			}
			answers := make(chan answer, 1)
			go func() {
				a, err := pays.payUntilAnswered(t.Context(), trial.healthy.URL)
				if err != nil {
					t.Error(err)
				}
				answers <- a
			}()
			if c.fate == arrivesLate {
				await(t, "the next attempt waits for the first", func() (waits bool) {
					err := trial.db.QueryRowContext(t.Context(),
						`SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`).Scan(&waits)
					return err == nil && waits
				})
				if committed() != "" {
					t.Error("the first attempt has committed already")
				}
				close(proxy.deliver)
			}
			a := <-answers
			if err := trial.check(t.Context(), map[string]answer{pays.name: a}); err != nil {
				t.Error(err)
			}
			if !a.isPaid() || before != "" && before != committed() {
				t.Errorf("answered %v; receipt %s, and %s before", a, committed(), before)
			}
		})
	}
}

// fate is what becomes of a COMMIT that comes through a proxy, whose client sees its connection end.
type fate int

const (
	lost fate = iota
	arrives
	arrivesLate // when deliver is closed
)

// proxy stands between a server and PostgreSQL.
type proxy struct {
	folder  string // of its socket
	behind  string // of PostgreSQL's
	fate    fate
	deliver chan struct{}
}

const socket = ".s.PGSQL.5432"

func startProxy(t *testing.T, behind string, fate fate) *proxy {
	t.Helper()
	folder, err := os.MkdirTemp("", "proxy") // with a short name: that of a socket may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	p := &proxy{folder: folder, behind: behind, fate: fate, deliver: make(chan struct{})}
	listener, err := net.Listen("unix", filepath.Join(folder, socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	return p
}

func (p *proxy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", filepath.Join(p.behind, socket))
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	for buffer := make([]byte, 64<<10); ; {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		isCommit := bytes.Contains(buffer[:n], []byte("commit\x00"))
		if isCommit {
			_ = client.Close()
		}
		switch {
		case isCommit && p.fate == lost:
			return
		case isCommit && p.fate == arrivesLate:
			<-p.deliver
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if isCommit {
			_, _ = io.Copy(io.Discard, server) // until the answer is here, and what made it is not hindered
			return
		}
	}
}

package overhttp

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

// Answer is what a client gets.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Post sends a request with the header fields, which come in pairs.
func Post(t *testing.T, url, body string, header ...string) Answer {
	t.Helper()
	a, err := Send(context.Background(), url, body, header...)
	if err != nil {
		t.Error(err)
	}
	return a
}

// Send is Post for a client that may leave.
func Send(ctx context.Context, url, body string, header ...string) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, string(text)}, err
}

// Exchange sends requests as they are, on one connection, and returns the statuses.
func Exchange(t *testing.T, url string, requests ...string) (statuses []int) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for _, request := range requests {
		if _, err := io.WriteString(conn, request+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, response.StatusCode)
	}
	return statuses
}

// NewLocker returns a Locker of the embedded Redis that logs nothing, and what its Observer hears.
func NewLocker(t *testing.T, opts ...core.Option) (*core.Locker, Events) {
	heard := make(Events, 1000)
	return locktest.New(t, append([]core.Option{core.Observe(heard), core.Logger(slog.New(slog.DiscardHandler))}, opts...)...), heard
}

// Events are what an Observer hears.
type Events chan core.Event

func (e Events) Observe(ctx context.Context, event core.Event) context.Context {
	e <- event
	return ctx
}

// Next returns the next event of that kind.
func (e Events) Next(t *testing.T, kind core.EventKind) core.Event {
	t.Helper()
	timeout := time.After(Patience)
	for {
		select {
		case event := <-e:
			if event.Kind == kind {
				return event
			}
		case <-timeout:
			t.Fatalf("there is no event of kind %d", kind)
		}
	}
}

// Receive ends the test when nothing comes.
func Receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("still waiting: %s", what)
		panic("unreachable")
	}
}

// Log is a log that can be read while it is written.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Log) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// Count returns how often s is in it.
func (b *Log) Count(s string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.buf.String(), s)
}

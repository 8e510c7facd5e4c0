package hertzlock_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"
	"github.com/cloudwego/hertz/pkg/common/hlog"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

const patience = time.Minute // only a test that hangs meets it

// serve returns the address of a server with the routes, which runs until the test
// ends.
func serve(t *testing.T, routes func(*server.Hertz), opts ...config.Option) (url string) {
	t.Helper()
	hlog.SetOutput(io.Discard)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := server.New(append(opts, server.WithListener(listener), server.WithSenseClientDisconnection(true))...)
	routes(h)
	done := make(chan error, 1)
	go func() { done <- h.Run() }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a request with the header fields, which come in pairs.
func post(t *testing.T, url, body string, header ...string) answer {
	a, err := send(context.Background(), url, body, header...)
	if err != nil {
		t.Error(err)
	}
	return a
}

func send(ctx context.Context, url, body string, header ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

func want(t *testing.T, a answer, status int) {
	t.Helper()
	if a.status != status {
		t.Errorf("%d %q, want %d", a.status, a.body, status)
	}
	for _, secret := range []string{"orderID", "42", "core:", "LOADING", "keyfunc", "lock"} {
		if status >= 400 && strings.Contains(a.body, secret) {
			t.Errorf("the client is told %q: %q", secret, a.body)
		}
	}
}

// events are what an Observer hears.
type events chan core.Event

func (e events) Observe(ctx context.Context, event core.Event) context.Context {
	e <- event
	return ctx
}

// next returns the next event of that kind.
func (e events) next(t *testing.T, kind core.EventKind) core.Event {
	t.Helper()
	timeout := time.After(patience)
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

// receive ends the test when nothing comes.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("still waiting: %s", what)
		panic("unreachable")
	}
}

func newLocker(t *testing.T) (*core.Locker, events) {
	heard := make(events, 1000)
	return locktest.New(t, core.Observe(heard), core.Logger(slog.New(slog.DiscardHandler))), heard
}

func wantFree(t *testing.T, locker *core.Locker) {
	t.Helper()
	if err := locker.Do(context.Background(), "orderID=42", func(context.Context) error { return nil }, core.Wait(patience)); err != nil {
		t.Errorf("the lock is not free: %v", err)
	}
}

package hertzlock_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"
	"github.com/cloudwego/hertz/pkg/common/hlog"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, // these two are there as long as the process
		goleak.IgnoreAnyFunction("github.com/cloudwego/netpoll.(*defaultPoll).Wait"),
		goleak.IgnoreAnyFunction("github.com/cloudwego/hertz/pkg/protocol.UpdateServerDate.func1"))
}

// serve returns the address of a server with the routes, which runs until the test
// ends.
func serve(t *testing.T, routes func(*server.Hertz), opts ...config.Option) (url string) {
	t.Helper()
	hlog.SetOutput(io.Discard)
	for {
		address := freeAddress(t)
		h := server.New(append(opts, server.WithHostPorts(address), server.WithSenseClientDisconnection(true))...)
		routes(h)
		ended := make(chan error, 1)
		go func() { ended <- h.Run() }()
		redistest.Await(t, overhttp.Patience, "the server", func() bool { return h.IsRunning() && answers(address) || len(ended) > 0 })
		if len(ended) > 0 { // somebody else has taken the port meanwhile
			t.Log(<-ended)
			continue
		}
		t.Cleanup(func() {
			http.DefaultClient.CloseIdleConnections()
			if err := h.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return "http://" + address
	}
}

// freeAddress is where nobody listens. Not all versions of hertz take a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func answers(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

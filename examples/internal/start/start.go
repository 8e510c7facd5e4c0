// Package start gives the examples a Redis and an address to serve at, and says in one
// line what to do where there is none. A program of your own needs nothing of it.
package start

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Redis returns the address of a Redis that answers: addr, or an embedded one where it
// is empty. Call stop when it is needed no more.
func Redis(ctx context.Context, addr string) (reachable string, stop func(), err error) {
	if flag.NArg() > 0 {
		return "", nil, fmt.Errorf("%q is not a flag; -help lists the flags", flag.Arg(0))
	}
	if addr == "" {
		embedded, err := miniredis.Run()
		if err != nil {
			return "", nil, err
		}
		stopClock := runClock(embedded)
		return embedded.Addr(), func() { stopClock(); embedded.Close() }, nil
	}
	logging.Disable() // one line says it, below
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil {
		return "", nil, fmt.Errorf("no Redis at %s: %w; start one there (-redis is host:port), or leave out -redis to run on an embedded one", addr, err)
	}
	return addr, func() {}, nil
}

// runClock has keys expire as time goes by, but none while a script runs, during which time stands still in Redis, too.
func runClock(embedded *miniredis.Miniredis) (stop func()) {
	embedded.SetTime(time.Now())
	embedded.ClockTTL(true)
	tick, stopped, ended := time.NewTicker(5*time.Millisecond), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-tick.C:
				embedded.SetTime(time.Now())
			case <-stopped:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(stopped); <-ended }
}

// Listen listens at addr, the value of the flag -serve, and returns beside it the URL
// to open in a browser.
func Listen(addr string) (listener net.Listener, url string, err error) {
	listener, err = net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, "", fmt.Errorf("%w; stop what listens there, or take another port, such as -serve :0 for any free one", err)
	case err != nil:
		return nil, "", fmt.Errorf("%w; -serve is host:port or :port, such as -serve :8080", err)
	}
	return listener, URL(listener.Addr()), nil
}

// URL is an address to click on: one that stands for all addresses of the machine is
// localhost.
func URL(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	if len(tcp.IP) == 0 || tcp.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return "http://" + tcp.String()
}

// Serve answers requests until ctx is done.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// handlers are what only the gin rows have: the same route without any lock, and latchkey with
// BackgroundRelease.
var handlers = []library{{name: bareName}, {name: backgroundName}}

// ginRows are requests to a gin route, by so many clients with keys of their own: guarded by our
// middleware in one line, and by the calls of redislock that one would write by hand.
func ginRows() []row {
	var rows []row
	for _, connections := range []int{1, 16, 64} {
		rows = append(rows, ginRequests(connections))
	}
	for _, connections := range []int{1, 16, 64} {
		rows = append(rows, distantGin(connections))
	}
	return rows
}

func ginRequests(connections int) row {
	return row{
		name:      fmt.Sprintf("gin-%d", connections),
		title:     "A gin request on a key of its own, " + plural(connections, "connection"),
		libraries: []string{bareName, latchkeyName, backgroundName, redislockName},
		base:      bareName,
		columns:   []figure{requestsPerSecond, requestP50, requestP99},
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			return b.gin(ctx, lib, b.server.Addr(), connections)
		},
	}
}

// distantGin is ginRequests with a network between the server and Redis.
func distantGin(connections int) row {
	r := ginRequests(connections)
	r.name = fmt.Sprintf("gin-distant-%d", connections)
	r.title += fmt.Sprintf(", Redis %v away", wire)
	r.columns = append(r.columns, roundTripP50)
	r.measure = func(ctx context.Context, b *bench, lib library) (figures, error) {
		proxy, err := redistest.OpenProxy(b.server.Addr())
		if err != nil {
			return nil, err
		}
		defer proxy.Close()
		proxy.Latency(wire)
		trip, err := roundTrip(ctx, proxy.Addr())
		if err != nil {
			return nil, err
		}
		f, err := b.gin(ctx, lib, proxy.Addr(), connections)
		if err == nil {
			f[roundTripP50] = milliseconds(trip)
		}
		return f, err
	}
	return r
}

// roundTrip is the median of those to a Redis, of a client that is alone.
func roundTrip(ctx context.Context, addr string) (time.Duration, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	taken := make([]time.Duration, 100)
	for i := range taken {
		start := time.Now()
		if err := client.Ping(ctx).Err(); err != nil {
			return 0, err
		}
		taken[i] = time.Since(start)
	}
	slices.Sort(taken)
	return percentile(taken, 50), nil
}

// gin has clients ask a server, which has its locks in a Redis, for a round.
func (b *bench) gin(ctx context.Context, lib library, redisAddr string, connections int) (figures, error) {
	handler, closeHandler, err := ginHandler(lib.name, redisAddr)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, closeHandler())
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	f, err := b.requests(ctx, listener.Addr().String(), connections)
	return f, errors.Join(err, server.Close(), closeHandler())
}

// ginHandler is the server under test.
func ginHandler(name, addr string) (http.Handler, func() error, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.ContextWithFallback = true // or the log has a line
	answer := func(c *gin.Context) { c.String(http.StatusOK, "order "+c.Param("orderID")+" paid\n") }
	client := redis.NewClient(&redis.Options{Addr: addr})
	done := client.Close
	switch name {
	case latchkeyName, backgroundName:
		var opts []core.Option
		if name == backgroundName {
			opts = append(opts, core.BackgroundRelease())
		}
		locker, err := core.New(client, opts...)
		if err != nil {
			return nil, nil, err
		}
		core.SetDefault(locker)
		engine.Use(ginlock.ByParam("orderID"))
		done = func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			return errors.Join(locker.Close(ctx), client.Close())
		}
	case redislockName:
		locker := redislock.New(client)
		unlocked := answer
		answer = func(c *gin.Context) {
			ctx := c.Request.Context()
			options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(pollEvery)}
			lock, err := locker.Obtain(ctx, "orderID="+c.Param("orderID"), 30*time.Second, options)
			if err != nil {
				c.AbortWithStatus(http.StatusConflict)
				return
			}
			defer lock.Release(context.WithoutCancel(ctx)) //nolint:errcheck // as in its README
			unlocked(c)
		}
	}
	engine.GET("/orders/:orderID/pay", answer)
	return engine, done, nil
}

// requests has clients ask for a round.
func (b *bench) requests(ctx context.Context, addr string, connections int) (figures, error) {
	var phase atomic.Int32
	var asking sync.WaitGroup
	taken := make([][]time.Duration, connections)
	errs := make([]error, connections)
	for i := range connections {
		asking.Go(func() { taken[i], errs[i] = request(addr, i, &phase) })
	}
	sleep(ctx, b.warmUp())
	start := time.Now()
	phase.Store(measuring)
	sleep(ctx, b.roundTime)
	phase.Store(over)
	elapsed := time.Since(start)
	asking.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(taken...)))
	return figures{
		requestsPerSecond: float64(len(all)) / elapsed.Seconds(),
		requestP50:        milliseconds(percentile(all, 50)),
		requestP99:        milliseconds(percentile(all, 99)),
	}, errors.Join(append(errs, ctx.Err())...)
}

// request is one client. It shares the processor with the server, so it does no
// more than it must: the whole request in one write, and of the response the
// status and the length.
func request(addr string, number int, phase *atomic.Int32) (taken []time.Duration, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := 0; phase.Load() != over; n++ {
		text := fmt.Appendf(nil, "GET /orders/%d-%d/pay HTTP/1.1\r\nHost: localhost\r\n\r\n", number, n%keysEach)
		start := time.Now()
		if _, err := conn.Write(text); err != nil {
			return nil, err
		}
		if err := readResponse(in); err != nil {
			return nil, err
		}
		if phase.Load() == measuring {
			taken = append(taken, time.Since(start))
		}
	}
	return taken, nil
}

func readResponse(in *bufio.Reader) error {
	status, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(status), "HTTP/1.1 200 ") {
		return fmt.Errorf("the server answered %q", status)
	}
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err = in.Discard(length)
			return err
		}
		if value, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bsm/redislock"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// handlers are what only rows of requests and jobs have: no lock at all, latchkey with
// BackgroundRelease, the answers that Idempotent has stored.
var handlers = []library{{name: bareName}, {name: backgroundName}, {name: replayName}, {name: handMadeName, sends: []string{"get", "set", "del"}}}

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
		libraries: []string{bareName, latchkeyName, plainName, backgroundName, redislockName},
		base:      bareName,
		columns:   []figure{requestsPerSecond, requestP50, requestP99, requestCPU, requestAllocs, requestBytes},
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
	r.libraries = []string{bareName, latchkeyName, backgroundName, redislockName}
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
	f, err := b.requests(ctx, handler, connections, func(client, n int) []byte {
		return fmt.Appendf(nil, "GET /orders/%d-%d/pay HTTP/1.1\r\nHost: localhost\r\n\r\n", client, n%keysEach)
	})
	return f, errors.Join(err, closeHandler())
}

// ginHandler is the server under test.
func ginHandler(name, addr string) (http.Handler, func() error, error) {
	engine, answer, done := newGin(), paid, func() error { return nil }
	switch name {
	case latchkeyName, backgroundName, plainName:
		open := openLatchkey
		var opts []core.Option
		switch name {
		case plainName:
			open = openPlain
		case backgroundName:
			opts = append(opts, core.BackgroundRelease())
		}
		l, err := open(addr, opts...)
		if err != nil {
			return nil, nil, err
		}
		core.SetDefault(l.locker)
		engine.Use(ginlock.ByParam("orderID"))
		done = l.close
	case redislockName:
		client := redis.NewClient(&redis.Options{Addr: addr})
		locker := redislock.New(client)
		answer = func(c *gin.Context) {
			ctx := c.Request.Context()
			options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(pollEvery)}
			lock, err := locker.Obtain(ctx, "orderID="+c.Param("orderID"), 30*time.Second, options)
			if err != nil {
				c.AbortWithStatus(http.StatusConflict)
				return
			}
			defer lock.Release(context.WithoutCancel(ctx)) //nolint:errcheck // as in its README
			paid(c)
		}
		done = client.Close
	}
	engine.GET("/orders/:orderID/pay", answer)
	return engine, done, nil
}

func newGin() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.ContextWithFallback = true // or the log has a line
	return engine
}

// paid is the route without any lock.
func paid(c *gin.Context) { c.String(http.StatusOK, "order "+c.Param("orderID")+" paid\n") }

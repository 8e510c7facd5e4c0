package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// idempotent is the row of requests that are processed once: first answers, which are stored, and
// stored ones, beside the same route without it.
func idempotent(connections int) row {
	return row{
		name:      "idempotent",
		title:     "A gin request with an Idempotency-Key, " + plural(connections, "connection") + ": first answers, and replays",
		libraries: []string{bareName, latchkeyName, replayName},
		base:      bareName,
		columns:   []figure{requestsPerSecond, requestP50, requestP99},
		measure: func(ctx context.Context, b *bench, lib library) (f figures, err error) {
			engine := newGin()
			engine.Use(func(c *gin.Context) { c.Set("userID", "7") }) // as authentication does
			if lib.name != bareName {
				l, err := openLatchkey(b.server.Addr())
				if err != nil {
					return nil, err
				}
				defer func() { err = errors.Join(err, l.close()) }()
				core.SetDefault(l.locker)
				engine.Use(ginlock.Idempotent(keyfunc.Value("userID")))
			}
			var processed atomic.Int64
			engine.POST("/orders/:orderID/pay", func(c *gin.Context) { processed.Add(1); paid(c) })
			f, err = b.requests(ctx, engine, connections, func(client, n int) []byte {
				if lib.name == replayName {
					n %= keysEach
				}
				return fmt.Appendf(nil, "POST /orders/%d-%d/pay HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: %[1]d-%d\r\n"+
					"Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"amount\":42}", client, n)
			})
			if most := int64(connections * keysEach); lib.name == replayName && processed.Load() > most {
				err = errors.Join(err, fmt.Errorf("%d requests processed, of %d that differ", processed.Load(), most))
			}
			return f, err
		},
	}
}

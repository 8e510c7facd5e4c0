package main

import (
	"context"
	"flag"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

var migrateFor = flag.Duration("migrate.for", 2*time.Second, "for how long old and new processes share a lock")

// Half of the workers take a lock by the library that a service comes from, the others by latchkey under the same name, as in a rolling deploy:
// no two have it at a time.
func TestOldLocksAndNewOnesExcludeOneAnother(t *testing.T) {
	for _, old := range []library{redislockLibrary, redsyncLibrary} {
		t.Run(old.name, func(t *testing.T) {
			server := redistest.Start(t)
			var inside, violations, turnsOfOld, turnsOfNew, failures atomic.Int64
			work := func(turns *atomic.Int64) {
				if inside.Add(1) != 1 {
					violations.Add(1)
				}
				turns.Add(1)
				time.Sleep(time.Millisecond)
				inside.Add(-1)
			}
			ctx, cancel := context.WithTimeout(context.Background(), *migrateFor)
			defer cancel()
			var workers sync.WaitGroup
			for range 2 {
				workers.Go(func() {
					l, err := old.open(server.Addr(), settings{})
					if err != nil {
						t.Error(err)
						return
					}
					defer l.close()
					for ctx.Err() == nil {
						k, err := l.lock(ctx, "order:42")
						switch {
						case err == nil:
							work(&turnsOfOld)
							if err := k.unlock(); err != nil {
								t.Errorf("unlock: %v", err)
							}
						case ctx.Err() == nil && strings.Contains(err.Error(), "WRONGTYPE"): // its word for busy, beside latchkey
							failures.Add(1)
							time.Sleep(pollEvery)
						case ctx.Err() == nil:
							t.Errorf("lock: %v", err)
							return
						}
					}
				})
				workers.Go(func() {
					client := redis.NewClient(&redis.Options{Addr: server.Addr()})
					defer client.Close()
					l, err := core.New(client, core.Prefix("order:"))
					if err != nil {
						t.Error(err)
						return
					}
					defer l.Close(context.Background())
					for ctx.Err() == nil {
						if l.Do(ctx, "42", func(context.Context) error { work(&turnsOfNew); return nil }) == nil {
							time.Sleep(2 * pollEvery)
						}
					}
				})
			}
			workers.Wait()
			t.Logf("%d turns of old processes, %d of new ones, %d times WRONGTYPE", turnsOfOld.Load(), turnsOfNew.Load(), failures.Load())
			if violations.Load() > 0 || turnsOfOld.Load() == 0 || turnsOfNew.Load() == 0 {
				t.Errorf("%d violations", violations.Load())
			}
		})
	}
}

//go:build go1.25

package core_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Old processes take the lock by SET NX, new ones by latchkey, under one name: no two have it at a time.
func TestOldAndNewProcessesOnOneName(t *testing.T) {
	server := redistest.Start(t)
	const name = "order:42"
	var inside, turnsOfOld, turnsOfNew atomic.Int32
	work := func(turns *atomic.Int32) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d at a time", n)
		}
		turns.Add(1)
		time.Sleep(time.Millisecond)
		inside.Add(-1)
	}
	ends := time.Now().Add(2 * time.Second)
	var processes sync.WaitGroup
	for range 4 {
		processes.Go(func() {
			client := server.Client(t)
			for time.Now().Before(ends) {
				if ok, err := client.SetNX(background, name, "mine", 5*time.Second).Result(); err != nil || !ok {
					time.Sleep(3 * time.Millisecond)
					continue
				}
				work(&turnsOfOld)
				client.Del(background, name)
			}
		})
		processes.Go(func() {
			l := onRedis(t, server.Client(t), core.Prefix("order:"))
			for time.Now().Before(ends) {
				k := take(t, background, l, "42")
				work(&turnsOfNew)
				unlock(t, k)
				time.Sleep(time.Millisecond) // as they take turns in memory, nobody else would get one
			}
		})
	}
	processes.Wait()
	if turnsOfOld.Load() == 0 || turnsOfNew.Load() == 0 { // old ones get few where new ones wait
		t.Errorf("%d turns of old processes, %d of new ones", turnsOfOld.Load(), turnsOfNew.Load())
	}
	t.Logf("%d turns of old processes, %d of new ones", turnsOfOld.Load(), turnsOfNew.Load())
}

func TestAStringOfARealRedis(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	l := onRedis(t, client, core.Lease(time.Second))
	k := take(t, background, l, "k")
	succeed(t, client.Set(background, "lock:k", "theirs", time.Minute).Err())
	<-k.Context().Done()
	wantErr(t, k.Unlock(background), core.ErrLost)
	var busy *core.BusyError
	if _, err := l.TryLock(background, "k"); !errors.As(err, &busy) || busy.RetryAfter != time.Second {
		t.Errorf("%v", err)
	}
	if info, err := l.Inspect(background, "k"); err != nil || !info.Locked {
		t.Errorf("%+v, %v", info, err)
	}
	if text, err := client.Get(background, "lock:k").Result(); text != "theirs" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if freed, err := l.ForceUnlock(background, "k"); !freed || err != nil {
		t.Error(freed, err)
	}
	if err := client.Get(background, "lock:k").Err(); err != redis.Nil {
		t.Error(err)
	}
}

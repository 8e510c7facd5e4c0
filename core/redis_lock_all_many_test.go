//go:build go1.25

package core_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func manyKeys(from, to int) (keys []string) {
	for i := from; i < to; i++ {
		keys = append(keys, "account="+strconv.Itoa(i))
	}
	return keys
}

// Calls of several processes want many keys, some of which they share: they exclude one another, none waits for ever, and nothing stays.
func TestLockAllOfManyKeysThatCross(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (redis.UniversalClient, func() int64){
		"single server": func() (redis.UniversalClient, func() int64) {
			c := redistest.Start(t).Client(t, patient)
			return c, func() int64 { return c.Exists(background, "lock:account=150", "lock:account=0").Val() }
		},
		"cluster": func() (redis.UniversalClient, func() int64) {
			c := redistest.StartCluster(t, 3, 0).Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = inTheEnd })
			return c, func() int64 { return c.Exists(background, "lock:account=150").Val() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, left := open()
			var inside [300]atomic.Int32
			var calls sync.WaitGroup
			for process := range 3 {
				l := onRedis(t, client)
				calls.Go(func() {
					for range 4 {
						from, to := 70*process, 70*process+160 // 0 to 159, 70 to 229, 140 to 299
						k, err := l.LockAll(background, manyKeys(from, to), core.Wait(inTheEnd))
						if err != nil {
							t.Error(err)
							return
						}
						for i := from; i < to; i++ {
							if inside[i].Add(1) != 1 {
								t.Errorf("two have account %d", i)
							}
						}
						for i := from; i < to; i++ {
							inside[i].Add(-1)
						}
						if err := k.Unlock(background); err != nil {
							t.Error(err)
						}
					}
				})
			}
			calls.Wait()
			if n := left(); n != 0 {
				t.Errorf("%d locks are left", n)
			}
		})
	}
}

// A call that finds a key busy keeps those before it, which stay renewed; when it gives up, nothing stays.
func TestLockAllOfManyKeysKeepsWhatItHas(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(core.Lease(3*time.Second)), s.locker()
		keys := manyKeys(0, 1000)
		slices.Sort(keys)
		busy := take(t, background, other, keys[500])
		done := make(chan error, 1)
		go func() {
			k, err := l.LockAll(background, keys, core.Wait(time.Minute))
			if err == nil {
				err = k.Unlock(background)
			}
			done <- err
		}()
		time.Sleep(20 * time.Second)
		if !s.Exists("lock:"+keys[0]) || !s.Exists("lock:"+keys[447]) || s.Exists("lock:"+keys[512]) {
			t.Error("it keeps other locks than the first 448")
		}
		unlock(t, busy)
		if err := <-done; err != nil {
			t.Error(err)
		}
		for i := range keys {
			s.isFree(keys[i])
		}
		busy = take(t, background, other, keys[500])
		_, err := l.LockAll(background, keys, core.Wait(time.Second))
		wantErr(t, err, core.ErrNotAcquired)
		time.Sleep(time.Second)
		for _, i := range []int{0, 447, 448, 999} {
			s.isFree(keys[i])
		}
		unlock(t, busy)
		_, err = l.LockAll(background, manyKeys(0, 10_001))
		wantErr(t, err, core.ErrTooManyKeys)
	})
}

// Unlock is bounded as a whole where Redis does not answer, however many keys there are.
func TestUnlockOfManyKeysIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Timeout(time.Second))
		k, err := l.LockAll(background, manyKeys(0, 640))
		if err != nil {
			t.Fatal(err)
		}
		s.failAll(hang, release)
		began := time.Now()
		wantErr(t, k.Unlock(background), core.ErrUnavailable)
		wantTime(t, "Unlock", time.Since(began), time.Second, 1200*time.Millisecond)
	})
}

// BenchmarkLockAllOfMany takes many locks, and frees them, while another process takes a lock again and again: max-ms is the longest it
// has waited for that, server-ms what Redis was busy with one command at the longest.
func BenchmarkLockAllOfMany(b *testing.B) {
	for _, n := range []int{64, 100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			server := redistest.Start(b)
			client := server.Client(b)
			client.ConfigSet(background, "slowlog-log-slower-than", "100")
			l, other := onRedis(b, client, core.Timeout(5*time.Second)), onRedis(b, server.Client(b))
			keys := manyKeys(0, n)
			ctx, stop := context.WithCancel(background)
			var longest time.Duration
			var beside sync.WaitGroup
			beside.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					unlock(b, take(b, background, other, "hot"))
					longest = max(longest, time.Since(began))
				}
			})
			b.ResetTimer()
			for range b.N {
				k, err := l.LockAll(background, keys)
				if err != nil {
					b.Fatal(err)
				}
				if err := k.Unlock(background); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			stop()
			beside.Wait()
			slow := time.Duration(0)
			for _, line := range client.SlowLogGet(background, -1).Val() {
				slow = max(slow, line.Duration)
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "max-ms")
			b.ReportMetric(float64(slow.Microseconds())/1000, "server-ms")
		})
	}
}

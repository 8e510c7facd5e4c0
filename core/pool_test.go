//go:build go1.25

package core_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// bubbleOfFewConnections is bubble for a test whose calls wait for a connection. go-redis gives the timers of those who
// have waited to others who wait, for which those of another bubble are no good.
func bubbleOfFewConnections(t *testing.T, test func(t *testing.T, s *embedded)) {
	t.Helper()
	forget := func() { runtime.GC(); runtime.GC() }
	forget()
	defer forget()
	bubble(t, test)
}

// small runs a test by a fake clock with a client of two connections.
func small(t *testing.T, options redis.Options, test func(t *testing.T, s *embedded, client *redis.Client)) {
	bubbleOfFewConnections(t, func(t *testing.T, s *embedded) {
		options.Addr, options.Dialer, options.PoolSize = s.addr, s.dial, 2
		client := redis.NewClient(&options)
		t.Cleanup(func() { _ = client.Close() })
		test(t, s, client)
	})
}

// waitForJobs has the application wait on all connections of its client for a minute.
func waitForJobs(client *redis.Client) {
	for range client.Options().PoolSize {
		go client.BLPop(background, time.Minute, "jobs")
	}
	synctest.Wait()
}

// Redis is healthy: whoever looks for the reason of a loss must not look there.
func TestPoolThatTheApplicationHasUsedUp(t *testing.T) {
	for name, options := range map[string]redis.Options{
		"":                      {},
		"ContextTimeoutEnabled": {ContextTimeoutEnabled: true},
		"PoolTimeout":           {PoolTimeout: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			small(t, options, func(t *testing.T, s *embedded, client *redis.Client) {
				logged := &records{}
				l := onRedis(t, client, core.Logger(logged.logger()))
				k := take(t, background, l, "k")
				waitForJobs(client)
				names := func(what, text string) {
					if !strings.Contains(text, "all 2 connections of the client's pool are in use") && !strings.Contains(text, "connection pool timeout") {
						t.Errorf("%s says %q, and nothing of the pool", what, text)
					}
				}
				err := l.Ping(background)
				wantErr(t, err, core.ErrUnavailable)
				names("Ping", err.Error())
				_, err = l.TryLock(background, "other")
				wantErr(t, err, core.ErrUnavailable)
				names("TryLock", core.Detail(err))
				<-k.Context().Done()
				failed := logged.texts("a renewal failed")
				if len(failed) == 0 {
					t.Error("no renewal failed")
				}
				for _, text := range failed {
					names("the log", text)
				}
				time.Sleep(time.Minute)
				wantErr(t, k.Unlock(background), core.ErrLost)
			})
		})
	}
}

// A Redis that does not answer is no matter of the pool.
func TestSilentRedisIsNoMatterOfThePool(t *testing.T) {
	small(t, redis.Options{}, func(t *testing.T, s *embedded, client *redis.Client) {
		l := onRedis(t, client)
		unlock(t, take(t, background, l, "warm-up"))
		s.failAll(hang, acquire)
		for _, done := range []<-chan outcome{start(background, l, "a", core.NoWait()), start(background, l, "b", core.NoWait())} {
			o := <-done
			wantErr(t, o.err, core.ErrUnavailable)
			if text := core.Detail(o.err); strings.Contains(text, "pool") {
				t.Error(text)
			}
		}
		s.heal()
	})
}

// A client that waits without end for answers never gives its connections up when a network falls silent.
func TestNewWarnsOfAClientWithoutReadTimeout(t *testing.T) {
	for _, c := range []struct {
		options redis.Options
		warns   bool
	}{
		{redis.Options{}, false},
		{redis.Options{ReadTimeout: time.Hour}, false},
		{redis.Options{ReadTimeout: -1}, true},
		{redis.Options{ReadTimeout: -1, ContextTimeoutEnabled: true}, false},
		{redis.Options{ReadTimeout: -2}, true},
		{redis.Options{ReadTimeout: -2, ContextTimeoutEnabled: true}, true}, // it sets no deadlines
	} {
		client := redis.NewClient(&c.options)
		others := []redis.UniversalClient{redis.NewClient(&redis.Options{Addr: "a"}), redis.NewClient(&redis.Options{Addr: "b"})}
		same := []redis.UniversalClient{client}
		for _, addr := range []string{"c", "d"} {
			o := c.options
			o.Addr = addr
			same = append(same, redis.NewClient(&o))
		}
		for name, open := range map[string]func(...core.Option) (*core.Locker, error){
			"New": func(opts ...core.Option) (*core.Locker, error) { return core.New(client, opts...) },
			"NewQuorum": func(opts ...core.Option) (*core.Locker, error) {
				return core.NewQuorum(append(others, client), opts...)
			},
			"NewQuorum of such": func(opts ...core.Option) (*core.Locker, error) { return core.NewQuorum(same, opts...) },
		} {
			logged := &records{}
			l, err := open(core.Logger(logged.logger()))
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Close(background)
			if n := logged.count("ReadTimeout"); n > 1 || n == 1 != c.warns {
				t.Errorf("%s, ReadTimeout %v, ContextTimeoutEnabled %v: %d warnings", name, c.options.ReadTimeout, c.options.ContextTimeoutEnabled, n)
			}
		}
		for _, client := range append(others, same...) {
			_ = client.Close()
		}
	}
}

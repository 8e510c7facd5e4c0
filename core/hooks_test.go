//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// counting is a hook as for tracing: it sees the commands of a client.
type counting struct {
	mu   sync.Mutex
	seen int
}

func (c *counting) see(cmds ...redis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range cmds {
		if strings.HasPrefix(cmd.Name(), "eval") {
			c.seen++
		}
	}
}

func (c *counting) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.see(cmd)
		return next(ctx, cmd)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.see(cmds...)
		return next(ctx, cmds)
	}
}

// Whoever traces his client sees all that is sent, by whatever way it goes.
func TestHooksOfTheClientSeeEveryScript(t *testing.T) {
	for _, obedient := range []bool{false, true} {
		t.Run("ContextTimeoutEnabled="+strconv.FormatBool(obedient), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				hook := &counting{}
				client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial, PoolSize: 300, ContextTimeoutEnabled: obedient})
				defer client.Close()
				client.AddHook(hook)
				l := onRedis(t, client)
				unlock(t, take(t, background, l, "k"))
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				lockMany(t, ctx, l, 100)
				k := take(t, ctx, l, "k")
				got := inTurn(t, l, 10, 0)
				unlock(t, k)
				for range 10 {
					<-got
				}
				synctest.Wait()
				hook.mu.Lock()
				defer hook.mu.Unlock()
				if sent := s.scripts(); hook.seen != sent {
					t.Errorf("the hook has seen %d of %d scripts", hook.seen, sent)
				}
			})
		})
	}
}

// Without a goroutine a call still ends in time, whatever the client's own timeouts are.
func TestCallsEndInTimeWithoutGoroutines(t *testing.T) {
	for _, obedient := range []bool{false, true} {
		t.Run("ContextTimeoutEnabled="+strconv.FormatBool(obedient), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				client := redis.NewClient(&redis.Options{
					Addr: s.addr, Dialer: s.dial, ReadTimeout: time.Hour, WriteTimeout: time.Hour, ContextTimeoutEnabled: obedient,
				})
				defer client.Close()
				l := onRedis(t, client, core.Timeout(2*time.Second))
				unlock(t, take(t, background, l, "warm-up"))
				k := take(t, background, l, "k")
				s.fail(release, hang)
				began := time.Now()
				wantErr(t, k.Unlock(background), core.ErrUnavailable)
				wantTime(t, "Unlock ended", time.Since(began), 0, 2*time.Second)
				time.Sleep(time.Second)
				s.isFree("k")

				unlock(t, take(t, background, l, "k")) // Redis has answered just now
				s.fail(acquire, hang)
				ctx, cancel := context.WithCancel(background)
				time.AfterFunc(time.Second, cancel)
				began = time.Now()
				_, err := l.Lock(ctx, "k")
				wantErr(t, err, core.ErrNotAcquired, context.Canceled)
				wantTime(t, "Lock ended", time.Since(began), 2*time.Second, 2*time.Second)
				s.fail(acquire, hang)
				ctx, cancel = context.WithTimeout(background, time.Second)
				defer cancel()
				began = time.Now()
				_, err = l.Lock(ctx, "k")
				wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
				wantTime(t, "Lock ended", time.Since(began), time.Second, time.Second)
				time.Sleep(time.Minute)
				s.isFree("k")
			})
		})
	}
}

// broken is a hook that stops commands, as a circuit breaker does.
type broken struct{ counting }

var errOpen = errors.New("circuit breaker is open")

func (b *broken) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error {
		time.Sleep(time.Millisecond)
		return errOpen
	}
}

func (b *broken) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error {
		time.Sleep(time.Millisecond)
		return errOpen
	}
}

// Taken out, calls that travel together fail without a cause.
func TestErrorsOfHooksAreCauses(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		client := s.client()
		defer client.Close()
		l := onRedis(t, client)
		lockMany(t, background, l, 20)
		synctest.Wait()
		client.AddHook(&broken{})
		for _, calls := range []int{50, 100} { // in one command, in several
			var done []<-chan outcome
			for i := range calls {
				done = append(done, start(background, l, strconv.Itoa(i)))
			}
			for _, d := range done {
				wantErr(t, (<-d).err, core.ErrUnavailable, errOpen)
			}
		}
	})
}

// doubling is a hook that has each command of scripts done twice, as one that repeats what has failed may.
type doubling struct{ counting }

func (*doubling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") && next(ctx, cmd) != nil {
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// What is sent twice counts once, also where one command takes all locks.
func TestLockAllSentTwice(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		client := s.client()
		defer client.Close()
		l := onRedis(t, client)
		unlockAll(t, takeAll(t, background, l, []string{"x", "y"}))
		synctest.Wait()
		client.AddHook(&doubling{})
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		m := takeAll(t, ctx, l, []string{"a", "b", "c"})
		wantLocked(t, s, "then", "a b c")
		_ = m.Unlock(background) // as far as it knows, each was lost: the second command finds none
		time.Sleep(time.Second)
		wantLocked(t, s, "in the end", "")
	})
}

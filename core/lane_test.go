package core_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// lockMany locks so many keys at once and returns how long it took.
func lockMany(t *testing.T, ctx context.Context, l *core.Locker, n int) time.Duration {
	t.Helper()
	began := time.Now()
	results := make(chan outcome, n)
	for i := range n {
		go func() {
			k, err := l.Lock(ctx, "many"+strconv.Itoa(i))
			results <- outcome{lock: k, err: err}
		}()
	}
	var locks []*core.Lock
	for range n {
		o := <-results
		if o.err != nil {
			t.Error(o.err)
			continue
		}
		locks = append(locks, o.lock)
	}
	took := time.Since(began)
	unlock(t, locks...)
	return took
}

// far is a connection to a server far away: whatever is sent takes d.
type far struct {
	net.Conn
	d time.Duration
}

func (c far) Write(b []byte) (int, error) {
	time.Sleep(c.d)
	return c.Conn.Write(b)
}

// Calls that come while others are under way travel together.
// Taken out, each has a round trip of its own on a connection of its own: hundreds
// of connections, or a queue for them.
func TestCallsThatComeTogetherShareRoundTrips(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		client := redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: 300, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := s.dial(ctx, network, addr)
			return far{conn, 4 * time.Millisecond}, err
		}})
		defer client.Close()
		l := onRedis(t, client)
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		lockMany(t, ctx, l, 200) // connects
		wantTime(t, "200 locks were there", lockMany(t, ctx, l, 200), 8*time.Millisecond, 20*time.Millisecond)
		if n := client.PoolStats().TotalConns; n > 6 {
			t.Errorf("%d connections for 200 calls", n)
		}
	})
}

// Calls that hang hold up the others for a moment only.
func TestCallsThatHangHoldUpNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		s.fail(acquire, hang, hang)
		sick, giveUp := context.WithCancel(ctx)
		one, two := start(sick, l, "one"), start(sick, l, "two")
		wantTime(t, "50 other locks were there", lockMany(t, ctx, l, 50), 0, 20*time.Millisecond)
		waits(t, one)
		waits(t, two)
		giveUp()
		<-one
		<-two
	})
}

// A call that waits for company is given up at once, and is never sent.
func TestCallThatWaitsForCompanyCanBeGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.fail(acquire, lateRequest(4*time.Millisecond), lateRequest(4*time.Millisecond))
		one, two := start(background, l, "one"), start(background, l, "two")
		ctx, cancel := context.WithCancel(background)
		third := start(ctx, l, "third")
		waits(t, third)
		cancel()
		synctest.Wait()
		o := <-third
		wantErr(t, o.err, core.ErrNotAcquired, context.Canceled)
		unlock(t, (<-one).lock, (<-two).lock)
		time.Sleep(time.Second)
		for _, c := range s.commands(acquire) {
			if c.args[2] == "lock:third" {
				t.Error("it was sent")
			}
		}
	})
}

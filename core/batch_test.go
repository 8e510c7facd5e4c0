//go:build go1.25

package core_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// sideBySide is how many calls to one server travel by themselves.
const sideBySide = 2

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
		if n := client.PoolStats().TotalConns; n > 18 { // of which 16 go by themselves
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
		sick, giveUp := context.WithCancel(ctx)
		var hanging []<-chan outcome
		for i := range sideBySide {
			s.fail(acquire, hang)
			hanging = append(hanging, start(sick, l, fmt.Sprint("sick", i)))
		}
		wantTime(t, "50 other locks were there", lockMany(t, ctx, l, 50), 0, 20*time.Millisecond)
		for _, done := range hanging {
			waits(t, done)
		}
		giveUp()
		for _, done := range hanging {
			<-done
		}
	})
}

// A call that waits for company is given up at once, and is never sent.
func TestCallThatWaitsForCompanyCanBeGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		var others []<-chan outcome
		for i := range sideBySide {
			s.fail(acquire, lateRequest(4*time.Millisecond))
			others = append(others, start(background, l, fmt.Sprint("other", i)))
		}
		ctx, cancel := context.WithCancel(background)
		last := start(ctx, l, "last")
		waits(t, last)
		cancel()
		synctest.Wait()
		o := <-last
		wantErr(t, o.err, core.ErrNotAcquired, context.Canceled)
		for _, done := range others {
			unlock(t, (<-done).lock)
		}
		time.Sleep(time.Second)
		for _, c := range s.commands(acquire) {
			if c.args[2] == "lock:last" {
				t.Error("it was sent")
			}
		}
	})
}

// Calls that are given up while they are on their way together leave nothing behind.
// Taken out, they stay locked for nobody until their leases end.
func TestCallsThatTravelTogetherAreCompensated(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		lockMany(t, background, l, 20)
		synctest.Wait() // now it is known that they may
		before := len(s.commands(acquire))
		var others []<-chan outcome
		for i := range sideBySide {
			s.fail(acquire, lateRequest(4*time.Millisecond))
			others = append(others, start(background, l, fmt.Sprint("other", i)))
		}
		synctest.Wait()
		s.fail(acquire, lateReply(time.Second))
		ctx, cancel := context.WithCancel(background)
		var given []<-chan outcome
		for i := range 10 {
			given = append(given, start(ctx, l, fmt.Sprint("given up", i)))
		}
		time.Sleep(100 * time.Millisecond) // they have got their locks, but not the reply
		if s.held("given up7") == "" {
			t.Error("it was not taken")
		}
		cancel()
		for _, done := range given {
			wantErr(t, (<-done).err, core.ErrNotAcquired, context.Canceled)
		}
		for _, done := range others {
			unlock(t, (<-done).lock)
		}
		time.Sleep(2 * time.Second)
		for i := range 10 {
			s.isFree(fmt.Sprint("given up", i))
		}
		if n := len(s.commands(acquire)) - before; n != sideBySide+1 {
			t.Errorf("%d commands", n)
		}
	})
}

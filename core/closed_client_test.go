package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// A client that was closed before its Locker never works again: nothing waits for it.
// Taken out, Close lasts for a lease, and releases are repeated for a minute longer.
func TestClientClosedBeforeItsLocker(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, s *embedded, l *core.Locker, client *redis.Client){
		"held": func(t *testing.T, s *embedded, l *core.Locker, client *redis.Client) {
			k := take(t, background, l, "k")
			_ = client.Close()
			wantErr(t, k.Unlock(background), core.ErrUnavailable, redis.ErrClosed)
		},
		"asking": func(t *testing.T, s *embedded, l *core.Locker, client *redis.Client) {
			_ = client.Close()
			_, err := l.Lock(background, "k")
			wantErr(t, err, core.ErrUnavailable, redis.ErrClosed)
		},
		"being released": func(t *testing.T, s *embedded, l *core.Locker, client *redis.Client) {
			s.failAll(refuse("MISCONF Redis cannot save"), release)
			wantErr(t, take(t, background, l, "k").Unlock(background), core.ErrUnavailable)
			_ = client.Close()
		},
		"lost": func(t *testing.T, s *embedded, l *core.Locker, client *redis.Client) {
			k := take(t, background, l, "k", core.FixedLease(time.Second))
			_ = client.Close()
			_, why := endOf(k.Context())
			wantErr(t, why, core.ErrLost)
		},
		"not handed over": func(t *testing.T, s *embedded, l *core.Locker, client *redis.Client) {
			k, why := take(t, background, l, "k"), errors.New("no")
			err := adapter.Handover(background, k, "job", time.Hour, func() error {
				_ = client.Close()
				return why
			})
			wantErr(t, err, why, core.ErrLost)
			wantErr(t, context.Cause(k.Context()), core.ErrLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				client := s.client()
				l, err := core.New(client, quiet)
				if err != nil {
					t.Fatal(err)
				}
				unlock(t, take(t, background, l, "warm-up"))
				began := time.Now()
				use(t, s, l, client)
				wantTime(t, "it ended", time.Since(began), 0, 1100*time.Millisecond)
				began = time.Now()
				if err := l.Close(background); err != nil {
					t.Error(err)
				}
				wantTime(t, "Close returned", time.Since(began), 0, 600*time.Millisecond)
			})
		})
	}
}

func TestClientClosedUnderAWaitingCall(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		holder := s.locker()
		k := take(t, background, holder, "k")
		client := s.client()
		l := onRedis(t, client)
		w := start(background, l, "k")
		time.Sleep(3 * time.Second)
		_ = client.Close()
		o := <-w
		wantErr(t, o.err, core.ErrUnavailable, redis.ErrClosed)
		wantTime(t, "it ended", o.took, 3*time.Second, 4100*time.Millisecond)
		unlock(t, k)
	})
}

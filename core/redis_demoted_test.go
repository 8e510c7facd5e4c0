package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A server that was demoted may not know of a lock that its master has by now. What it does not find is not lost: a
// holder that believed so would leave the lock on the master until its lease ends.
func TestDemotedServerTellsOfNoLoss(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]func(l, another *core.Locker, k *core.Lock, ticket string) error{
		"Unlock":  func(_, _ *core.Locker, k *core.Lock, _ string) error { return k.Unlock(background) },
		"Refresh": func(_, _ *core.Locker, k *core.Lock, _ string) error { return k.Refresh(background) },
		"Count":   func(_, _ *core.Locker, k *core.Lock, _ string) error { _, err := k.Count(background); return err },
		"enter": func(_, another *core.Locker, k *core.Lock, _ string) error {
			_, err := another.Lock(k.Context(), "k")
			return err
		},
		"Handover": func(_, _ *core.Locker, k *core.Lock, _ string) error {
			_, err := k.Handover(background, time.Minute)
			return err
		},
		"Resume": func(l, _ *core.Locker, _ *core.Lock, ticket string) error {
			_, err := l.Resume(background, "parked", ticket)
			return err
		},
		"renewal": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			admin := server.Client(t)
			short := core.Timeout(300 * time.Millisecond)
			l, another := onRedis(t, server.Client(t), short, core.Lease(6*time.Second)), onRedis(t, server.Client(t), short)
			ticket, err := take(t, background, l, "parked").Handover(background, time.Minute)
			succeed(t, err)
			k := take(t, background, l, "k")
			succeed(t, admin.Del(background, "lock:k", "lock:parked").Err())
			succeed(t, admin.Do(background, "replicaof", "127.0.0.1", "1").Err())
			t.Cleanup(func() { succeed(t, admin.Do(background, "replicaof", "no", "one").Err()) }) // Close confirms releases
			if asks != nil {
				wantErr(t, asks(l, another, k, ticket), core.ErrUnavailable)
				return
			}
			redistest.Await(t, inTheEnd, "a renewal", func() bool {
				return strings.Contains(admin.Info(background, "errorstats").Val(), "errorstat_READONLY")
			})
			wantErr(t, k.Context().Err())
		})
	}
}

package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

type unluckyKey struct{}

var errUnlucky = errors.New("the hook refuses this call")

// picky is a hook that refuses the calls of one caller.
type picky struct{ counting }

func (p *picky) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(unluckyKey{}) != nil {
			time.Sleep(10 * time.Millisecond)
			cmd.SetErr(errUnlucky)
			return errUnlucky
		}
		return next(ctx, cmd)
	}
}

// A call that fails for a reason of its own leaves the wait queue alone.
// Taken out, all calls for the key are told that Redis is unavailable.
func TestPrivateFailureEndsOneCallOnly(t *testing.T) {
	for name, c := range map[string]struct {
		ctx  context.Context
		opts []core.Option
		hurt func(*embedded)
	}{
		"a lease shorter than the round trip": {
			background, []core.Option{core.Lease(5 * time.Millisecond)},
			func(s *embedded) { s.fail(acquire, lateReply(10*time.Millisecond)) },
		},
		"its hook fails": {
			context.WithValue(background, unluckyKey{}, true), nil,
			func(*embedded) {},
		},
		"an answer that never comes": {
			background, nil,
			func(s *embedded) { s.fail(acquire, hang) },
		},
		"an error of Redis": {
			background, nil,
			func(s *embedded) {
				s.fail(acquire, func(s *embedded, p *peer, cmd string, args []string) bool {
					time.Sleep(10 * time.Millisecond)
					return refuse("NOPERM this user has no permissions")(s, p, cmd, args)
				})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				client := s.client()
				client.AddHook(&picky{})
				l := onRedis(t, client, core.Timeout(2*time.Second))
				c.hurt(s)
				head := start(c.ctx, l, "k", c.opts...)
				behind := []<-chan outcome{start(background, l, "k"), start(background, l, "k")}
				waits(t, head)
				o := <-head
				wantErr(t, o.err, core.ErrUnavailable)
				for _, w := range behind {
					next := <-w
					if next.err != nil {
						t.Fatalf("a call behind it: %v", next.err)
					}
					wantTime(t, "it had the lock", next.took, 0, o.took+time.Second)
					unlock(t, next.lock)
				}
				time.Sleep(time.Second)
				s.isFree("k")
			})
		})
	}
}

// The same in a wait that has lasted: Redis has said before that the lock is busy.
func TestLateGrantInALongWaitEndsOneCallOnly(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, s.locker(), "k")
		head := start(background, l, "k", core.Lease(5*time.Millisecond))
		behind := start(background, l, "k")
		s.fail(acquire, lateReply(10*time.Millisecond))
		unlock(t, k)
		o := <-head
		if !errors.Is(o.err, core.ErrUnavailable) {
			t.Fatalf("the head: %v", o.err)
		}
		next := <-behind
		if next.err != nil {
			t.Fatal(next.err)
		}
		wantTime(t, "the next had it", next.took, 0, o.took+time.Second)
		unlock(t, next.lock)
	})
}

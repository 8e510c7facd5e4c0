package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// The calls of one tenant that wait for a permit of the tenant hold none of those that all tenants share, which sort before
// by their name. The calls of a tenant get through, too, while the others use up what all share.
func TestPermitsThatACallCannotUseYetAreGivenBack(t *testing.T) {
	const all, ours, theirs = "all tenants", "tenant=acme", "tenant=other"
	const work = 400 * time.Millisecond
	bubble(t, func(t *testing.T, s *embedded) {
		ctx, stop := context.WithCancel(background)
		defer stop()
		for range 2 {
			l := s.locker()
			for range 20 {
				go func() {
					for ctx.Err() == nil {
						_ = l.DoAll(ctx, []string{all, ours}, func(context.Context) error { time.Sleep(work); return nil }, core.PermitsEach(10, 3))
					}
				}()
			}
		}
		other, refused := s.locker(), 0
		time.Sleep(10 * time.Second)
		for range 100 {
			time.Sleep(97 * time.Millisecond)
			info, err := other.Inspect(background, all)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(info.Holders); n > 4 { // one may be asking
				t.Errorf("%d permits of all are taken, while 3 calls may work", n)
			}
			m, err := other.LockAll(background, []string{all, theirs}, core.PermitsEach(10, 3), core.NoWait())
			if err != nil {
				refused++
				continue
			}
			unlockAll(t, m)
		}
		if refused > 0 {
			t.Errorf("another tenant was refused %d times of 100", refused)
		}
	})
}

// Who needs permits of two locks, that others use up, gets them in the end.
func TestCallsForContendedPermitsGetThrough(t *testing.T) {
	const work = 50 * time.Millisecond
	for name, permits := range map[string]core.Option{"as many": core.PermitsEach(2, 2), "many first": core.PermitsEach(6, 2), "few first": core.PermitsEach(2, 6)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				ctx, stop := context.WithCancel(background)
				defer stop()
				for range 2 {
					l := s.locker()
					for i := range 40 {
						key, n := "a", 2
						if i%2 == 0 {
							key = "b"
						}
						if name == "many first" && key == "a" || name == "few first" && key == "b" {
							n = 6
						}
						go func() {
							for ctx.Err() == nil {
								_ = l.Do(ctx, key, func(context.Context) error { time.Sleep(work); return nil }, core.Permits(n))
							}
						}()
					}
				}
				time.Sleep(time.Second)
				l := s.locker()
				for range 5 {
					began := time.Now()
					m, err := l.LockAll(background, []string{"a", "b"}, permits, core.Wait(time.Minute))
					if err != nil {
						t.Fatalf("after %v: %v", time.Since(began), err)
					}
					if took := time.Since(began); took > 8*time.Second {
						t.Errorf("it took %v", took)
					}
					unlockAll(t, m)
				}
			})
		})
	}
}

//go:build go1.25

package core_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// What has surely done nothing leaves the lock as it was. What may have done it is settled, and the handle counts as a sharer meanwhile.
func TestDowngradeWithoutAnAnswer(t *testing.T) {
	for what, tc := range map[string]struct {
		faults  []fault
		refused bool
		sure    bool // Redis has answered by the time that the call returns
	}{
		"lost on its way":   {faults: []fault{hang}},
		"its answer is":     {faults: []fault{lateReply(10 * time.Second)}},
		"it arrives later":  {faults: []fault{lateRequest(10 * time.Second)}},
		"connection broken": {faults: []fault{loseReply}, sure: true},
		"its copy refused":  {faults: []fault{loseReply, refuse("OOM command not allowed when used memory > 'maxmemory'.")}},
		"refused":           {faults: []fault{refuse("NOPERM this user has no permissions")}, refused: true},
		"out of memory":     {faults: []fault{refuse("OOM command not allowed when used memory > 'maxmemory'.")}, refused: true},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k")
				reader := start(background, b, "k", core.Shared())
				s.fail("downgrade", tc.faults...)
				err := k.Downgrade(background)
				if !tc.sure {
					wantErr(t, err, core.ErrUnavailable)
				} else if err != nil {
					t.Fatal(err)
				}
				inner, err := a.Lock(k.Context(), "k")
				if tc.refused {
					wantErr(t, err)
					unlock(t, inner)
					time.Sleep(time.Minute)
					waits(t, reader)
					if held := a.Snapshot().Held; held[0].Form != "exclusive" {
						t.Errorf("held: %+v", held)
					}
					unlock(t, k)
					unlock(t, (<-reader).lock)
					return
				}
				wantErr(t, err, core.ErrUpgrade)
				began := time.Now()
				o := <-reader
				within := time.Second
				if tc.sure {
					within = prompt
				}
				wantTime(t, "the sharer has it", time.Since(began), 0, within)
				time.Sleep(time.Minute)
				if o.err != nil || k.Context().Err() != nil {
					t.Fatal(o.err, k.Context().Err())
				}
				unlock(t, k, o.lock)
				time.Sleep(time.Minute)
				s.isFree("k")
			})
		})
	}
}

// One of two requests may be refused when the other has done it.
func TestDowngradesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		s.fail("downgrade", func(_ *embedded, p *peer, _ string, _ []string) bool {
			time.Sleep(time.Second)
			p.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
			return true
		}, lateReply(1500*time.Millisecond))
		late := make(chan error, 1)
		go func() { late <- k.Downgrade(background) }()
		synctest.Wait()
		downgrade(t, k)
		wantErr(t, <-late, core.ErrUnavailable)
		if held := l.Snapshot().Held; held[0].Form != "shared" {
			t.Errorf("held: %+v", held)
		}
		unlock(t, take(t, background, s.locker(), "k", core.Shared()), k)
	})
}

// A copy of a request that was refused may arrive when nothing prevents it any more.
func TestDowngradeOfWhichACopyArrivesLater(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k")
		inner := take(t, k.Context(), b, "k")
		s.fail("downgrade", func(s *embedded, p *peer, cmd string, args []string) bool {
			time.AfterFunc(time.Second, func() { s.pass(nowhere(), cmd, args) })
			p.Close()
			return true
		})
		wantErr(t, k.Downgrade(background), core.ErrUnavailable)
		unlock(t, inner)
		time.Sleep(2 * time.Second)
		unlock(t, take(t, background, b, "k", core.Shared()))
		_, err := a.Lock(k.Context(), "k")
		wantErr(t, err, core.ErrUpgrade)
		unlock(t, k)
	})
}

// A lock that a release has granted has its own lease from a downgrade on.
func TestDowngradeOfAGrant(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		first := take(t, background, a, "k")
		granted := start(background, b, "k")
		time.Sleep(time.Millisecond)
		unlock(t, first)
		k := (<-granted).lock
		downgrade(t, k)
		info, err := a.Inspect(background, "k")
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Granted || info.Holders[0].TTL < lease-time.Second {
			t.Errorf("%+v, %v", info, err)
		}
		time.Sleep(time.Minute)
		unlock(t, k)
	})
}

// A lease begins anew, and a fixed one goes on.
func TestLeaseAfterADowngrade(t *testing.T) {
	for what, tc := range map[string]struct {
		opt  core.Option
		want time.Duration // until the lock has ended, which nothing renews any more
	}{
		"renewed": {core.Lease(time.Minute), time.Minute}, "fixed": {core.FixedLease(time.Minute), time.Minute - 10*time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k", tc.opt)
				s.failAll(hang, renew)
				time.Sleep(10 * time.Second)
				downgrade(t, k)
				began := time.Now()
				if info, err := l.Inspect(background, "k"); err != nil || info.TTL > tc.want || info.TTL < tc.want-time.Second {
					t.Errorf("%+v, %v", info, err)
				}
				ended, _ := endOf(k.Context())
				wantTime(t, "it has ended", ended.Sub(began), tc.want-time.Second, tc.want)
			})
		})
	}
}

// A request that arrives when its handle has been unlocked does nothing to the next holder.
func TestDowngradeThatArrivesAfterUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a := s.locker()
		k := take(t, background, a, "k")
		next := start(background, a, "k")
		s.fail("downgrade", lateRequest(time.Second))
		done := make(chan error, 1)
		go func() { done <- k.Downgrade(background) }()
		synctest.Wait()
		unlock(t, k) // the lock is not handed off in memory, by which the next one would have the same token in Redis
		holder := (<-next).lock
		wantErr(t, <-done, core.ErrNotHeld)
		if info, err := a.Inspect(background, "k"); err != nil || info.Form != "exclusive" {
			t.Errorf("%+v, %v", info, err)
		}
		unlock(t, holder)
	})
}

// A lock that is gone is lost, whatever has its name now.
func TestDowngradeOfALockThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for what, now := range map[string]func(){
			"deleted": func() {},
			"another": func() { take(t, background, s.locker(), "k", core.FixedLease(time.Second)) },
			"shared":  func() { take(t, background, s.locker(), "k", core.FixedLease(time.Second), core.Shared()) },
			"string":  func() { succeed(t, s.Set("lock:k", "of SET NX")) },
		} {
			k := take(t, background, l, "k")
			s.Del("lock:k")
			now()
			err := k.Downgrade(background)
			if wantErr(t, err, core.ErrLost); t.Failed() {
				t.Fatal(what)
			}
			wantErr(t, context.Cause(k.Context()), core.ErrLost)
			s.Del("lock:k")
		}
	})
}

// Its events go on with the form that the call asked for, so that gauges go back to 0.
func TestObserversHearOneFormOfADowngradedLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		k := take(t, background, s.locker(core.Observe(o)), "k")
		downgrade(t, k)
		unlock(t, k)
		synctest.Wait()
		for _, e := range o.events {
			if e.Form != "exclusive" {
				t.Errorf("%s: form %q", line(e), e.Form)
			}
		}
	})
}

// A quorum has no forms.
func TestDowngradeInAQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := onQuorum(t, []*embedded{s, newEmbedded(t), newEmbedded(t)})
		k := take(t, background, l, "k")
		if err := k.Downgrade(background); err == nil || !strings.Contains(err.Error(), "NewQuorum") {
			t.Errorf("error %v", err)
		}
		unlock(t, k)
	})
}

package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The question of a re-entry arrives when its outer lock has been unlocked. Nothing was lost.
func TestRedisReentryThatArrivesAfterTheUnlock(t *testing.T) {
	t.Parallel()
	heard, logged := &ear{}, &records{}
	_, proxy, l := throughProxy(t, core.Timeout(inTheEnd), core.Lease(3*inTheEnd), core.Observe(heard), core.Logger(logged.logger()))
	outer := take(t, background, l, "k")
	held := proxy.HoldRequest(sha(t, "acquire"))
	done := make(chan outcome, 1)
	go func() {
		k, err := l.Lock(context.WithoutCancel(outer.Context()), "k")
		done <- outcome{lock: k, err: err}
	}()
	held.Wait(t)
	unlock(t, outer)
	held.Release()
	o := <-done
	if o.err != nil {
		t.Fatal(o.err)
	}
	if o.lock.Token() <= outer.Token() {
		t.Errorf("token %d after %d", o.lock.Token(), outer.Token())
	}
	unlock(t, o.lock)
	for _, e := range heard.events {
		if e.Kind == core.EventLost {
			t.Errorf("heard: %s", line(e))
		}
	}
	if logged.count("lost") > 0 {
		t.Errorf("the log has %q", logged.all())
	}
}

// Nobody waits when a call has given up: the lock is free after the next Unlock, for all calls of the process.
// Taken out, most of the calls are refused.
func TestRedisCallThatGaveUpRefusesNobodyHere(t *testing.T) {
	t.Parallel()
	l := onRedis(t, redistest.Start(t).Client(t))
	for range 30 {
		k := take(t, background, l, "k")
		_, err := l.Lock(background, "k", core.Wait(10*time.Millisecond))
		wantErr(t, err, core.ErrNotAcquired)
		unlock(t, k)
		k, err = l.TryLock(background, "k")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, k)
	}
}

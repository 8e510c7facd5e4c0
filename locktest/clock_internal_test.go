//go:build go1.25

package locktest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A key that expired in the middle of a script would be made anew by its next command, and never expire.
func TestNoKeyExpiresWithinAScript(t *testing.T) {
	l := New(t)
	_, client := sceneOf(t, l).open(t)
	defer client.Close()
	const script = `
		redis.call('SET', KEYS[1], 'v', 'PX', 1)
		for i = 1, 500 do redis.call('EXISTS', KEYS[1]) end -- for longer than that
		return redis.call('EXISTS', KEYS[1])`
	for i := range 2 {
		there, err := client.Eval(t.Context(), script, []string{"k"}).Int()
		if err != nil || there != 1 {
			t.Errorf("at the end of script %d: %d, %v", i, there, err)
		}
	}
}

func TestTimePassesAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(t)
		Outage(t, l)()
		k, err := l.Lock(t.Context(), "k", core.FixedLease(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if again, err := l.TryLock(t.Context(), "k"); err != nil {
			t.Errorf("an hour later: %v", err)
		} else if err := again.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		_ = k.Unlock(t.Context()) // it is lost
	})
}

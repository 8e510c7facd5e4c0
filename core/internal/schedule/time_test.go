//go:build go1.25

package schedule_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall, now := time.Now(), schedule.Now()
		if now <= 0 || schedule.At(wall) != now || !now.Wall().Equal(wall) {
			t.Errorf("%v is %d, %d is %v", wall, schedule.At(wall), now, now.Wall())
		}
		time.Sleep(time.Second)
		if d := schedule.Now().Sub(now); d != time.Second || now.Add(d) != schedule.Now() {
			t.Errorf("a second took %v", d)
		}
	})
}

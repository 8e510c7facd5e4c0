package conn

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A process that stood still while a command was on its way learns nothing of its client: the timer was late, too.
func TestCommandOfAProcessThatStoodStill(t *testing.T) {
	client := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true})
	defer client.Close()
	now := time.Now()
	sent := now.Add(-time.Minute)
	for name, c := range map[string]struct {
		context *sendContext
		want    bool // a command may go directly
	}{
		"the timer has not ended it":  {&sendContext{deadline: sent}, true},
		"the timer has ended it late": {&sendContext{deadline: sent, err: context.DeadlineExceeded, late: now.Add(-overrun).Sub(sent)}, true},
		"the timer has ended it":      {&sendContext{deadline: sent, err: context.DeadlineExceeded}, false},
	} {
		d := newDirect(client)
		if d.noteBlocked(c.context, sent, now); d.mayGo() != c.want {
			t.Errorf("%s: another may go directly: %v", name, !c.want)
		}
	}
}

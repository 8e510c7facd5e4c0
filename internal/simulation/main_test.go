package simulation

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

var (
	oneSeed = flag.Uint64("simulation.seed", 0, "run one seed, several times; 0: a fixed set")
	longFor = flag.Duration("simulation.for", 0, "run new seeds for that long, and print a table")
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // connections that fail are the point here
	goleak.VerifyTestMain(m)
}

// dawn is when the fake time of a bubble begins.
var dawn = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// now is the time of visits, since the world began.
func now() int64 { return int64(time.Since(dawn)) }

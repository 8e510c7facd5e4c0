package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

var (
	longFor = flag.Duration("faults.for", 0, "inject faults at random for that long, and print a table; 0: each fault once")
	only    = flag.String("faults.only", "", "inject only the faults whose name matches this regular expression")
	beside  = flag.String("faults.beside", "", "every second worker is this test binary, of another commit")
	seed    = flag.Uint64("faults.seed", 0, "repeat the order of faults of an earlier run; 0: a new one")
)

// TestMain runs the tests, or is a worker of them.
func TestMain(m *testing.M) {
	if config := os.Getenv(workerEnv); config != "" {
		if err := workerMain(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	redis.SetLogger(silent{})
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) // overridden when the flag is parsed
	}
	goleak.VerifyTestMain(m)
}

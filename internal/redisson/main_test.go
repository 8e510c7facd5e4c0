package redisson

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/core"
)

var target = flag.String("redisson.target", "", "the folder into which Maven has built the Java side; empty: skip the tests that need it")

// holderEnv makes a process of this test binary one that holds a lock: its value is
// the address of Redis.
const holderEnv = "LATCHKEY_REDISSON_HOLDER"

func TestMain(m *testing.M) {
	if address := os.Getenv(holderEnv); address != "" {
		if err := hold(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// hold locks the key that it is told, says so, and holds the lock until its standard
// input ends, or it is killed.
func hold(address string) error {
	client := redis.NewClient(&redis.Options{Addr: address})
	l, err := core.New(client, core.Lease(lease))
	if err != nil {
		return err
	}
	k, err := l.Lock(context.Background(), mortal)
	if err != nil {
		return err
	}
	fmt.Println("held")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return k.Unlock(context.Background())
}

const (
	// lease is that of locks whose end a test waits for, on both sides.
	lease = 3 * time.Second
	// inTheEnd ends a test that waits in vain, on a machine that may be busy with
	// anything.
	inTheEnd = 2 * time.Minute
	// mortal is the key of a holder that is killed.
	mortal = "mortal"
)

var background = context.Background()

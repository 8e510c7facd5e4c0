package core_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// One cycle is Lock and Unlock. BenchmarkFloor is what two scripts cost that do
// nothing, by go-redis alone: compare with it in the same run.

func BenchmarkFloor(b *testing.B) {
	client := redistest.Start(b).Client(b)
	nothing := redis.NewScript("return 1")
	for b.Loop() {
		for range 2 {
			if err := nothing.Run(background, client, []string{"k"}).Err(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkUncontended(b *testing.B) {
	l := onRedis(b, redistest.Start(b).Client(b))
	for b.Loop() {
		cycle(b, l, "k")
	}
}

func BenchmarkManyKeys(b *testing.B) {
	l := onRedis(b, redistest.Start(b).Client(b))
	var n atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		key := strconv.FormatInt(n.Add(1), 10)
		for pb.Next() {
			cycle(b, l, key)
		}
	})
}

func BenchmarkHotKey(b *testing.B) {
	l := onRedis(b, redistest.Start(b).Client(b))
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			cycle(b, l, "k")
		}
	})
}

func cycle(b *testing.B, l *core.Locker, key string) {
	k, err := l.Lock(background, key)
	if err == nil {
		err = k.Unlock(background)
	}
	if err != nil {
		b.Error(err)
	}
}

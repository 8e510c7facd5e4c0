package core_test

import (
	"bytes"
	"crypto/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// With the rights that the FAQ gives, on one Redis and on a cluster: any bytes come back, also to
// those who wait in other processes, and nothing stays in Redis for ever.
func TestAnswersOnRedis(t *testing.T) {
	t.Parallel()
	server, cluster := redistest.Start(t), redistest.StartCluster(t, 3, 0)
	for name, client := range map[string]func() redis.UniversalClient{
		"alone":   func() redis.UniversalClient { return user(t, server, rightsInTheFAQ(t)...) },
		"cluster": func() redis.UniversalClient { return cluster.Client(t) },
	} {
		t.Run(name, func(t *testing.T) {
			admin := client()
			a, b := onRedis(t, admin), onRedis(t, client())
			text := make([]byte, 256<<10)
			_, _ = rand.Read(text)
			for i := range 10 {
				key := "k" + strconv.Itoa(i)
				k := take(t, background, a, key, attemptAt(request))
				waiting := make(chan error, 1)
				go func() {
					_, err := b.Lock(background, key, attemptAt(request))
					waiting <- err
				}()
				if err := adapter.Answer(background, k, text, kept); err != nil {
					t.Fatal(err)
				}
				if got, ok := adapter.AnswerOf(<-waiting); !ok || !bytes.Equal(got, text) {
					t.Errorf("%d bytes", len(got))
				}
				_, err := b.TryLock(background, key, attemptAt(other))
				wantErr(t, err, adapter.ErrReused)
				if ttl := server.Client(t).PTTL(background, "lock:"+key).Val(); name == "alone" && (ttl <= kept-time.Minute || ttl > kept) {
					t.Errorf("the answer is kept for %v", ttl)
				}
			}
		})
	}
}

// A Redis that has run out of memory has no room for an answer: it is kept as soon as there is
// some.
func TestAnswerWithoutMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	l := onRedis(t, server.Client(t), core.Timeout(3*time.Second))
	k := take(t, background, l, "k", attemptAt(request), core.Lease(time.Minute))
	set := func(n string) {
		t.Helper()
		if err := admin.ConfigSet(background, "maxmemory", n).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	wantErr(t, adapter.Answer(background, k, []byte("paid"), kept), core.ErrUnavailable)
	_, err := l.TryLock(background, "k", attemptAt(request))
	wantBusy(t, err) // not free for a second attempt
	set("0")
	redistest.Await(t, inTheEnd, "the answer", func() bool {
		_, err := l.TryLock(background, "k", attemptAt(request))
		text, ok := adapter.AnswerOf(err)
		return ok && string(text) == "paid"
	})
}

// A list of locks does not read their answers.
func TestInspectReadsNoAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := onRedis(t, server.Client(t))
	answer(t, take(t, background, l, "k", attemptAt(request)), strings.Repeat("paid", 64<<10))
	if info, err := l.Inspect(background, "k"); err != nil || info.State != core.StateAnswered {
		t.Errorf("%+v, %v", info, err)
	}
	stats := server.Client(t).Info(background, "stats").Val()
	_, sent, _ := strings.Cut(stats, "total_net_output_bytes:")
	sent, _, _ = strings.Cut(sent, "\r")
	if n, err := strconv.Atoi(sent); err != nil || n > 64<<10 {
		t.Errorf("Redis has sent %q bytes, %v", sent, err)
	}
}

// Redis is one for all: who is refused with another request for the key, or only looks at the lock,
// must not have it load an answer.
func TestRefusedRequestLoadsNoAnswer(t *testing.T) {
	t.Parallel()
	const length = 8 << 20
	server := redistest.Start(t)
	admin, l := server.Client(t), onRedis(t, server.Client(t))
	answer(t, take(t, background, l, "k", attemptAt(request)), strings.Repeat("a", length))
	loaded := func() bool {
		_, used, _ := strings.Cut(admin.Info(background, "memory").Val(), "used_memory_lua:")
		used, _, _ = strings.Cut(used, "\r")
		n, err := strconv.Atoi(used)
		if err != nil {
			t.Fatal(err)
		}
		return n >= length
	}
	if err := admin.ScriptFlush(background).Err(); err != nil { // what it has loaded before
		t.Fatal(err)
	}
	_, err := l.TryLock(background, "k", attemptAt(other))
	wantErr(t, err, adapter.ErrReused)
	if info, err := l.Inspect(background, "k"); err != nil || info.State != core.StateAnswered || loaded() {
		t.Errorf("%+v, %v; loaded: %v", info, err, loaded())
	}
	_, err = l.TryLock(background, "k", attemptAt(request))
	if text, ok := adapter.AnswerOf(err); !ok || len(text) != length || !loaded() {
		t.Errorf("%d bytes, %v; loaded: %v", len(text), err, loaded())
	}
}

// Redisson's locks wait for an attempt, and for the end of its answer. Its scripts count numeric
// fields down.
func TestNoFieldOfAnAttemptIsANumber(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		check := func() {
			t.Helper()
			for _, field := range s.fields("k") {
				if _, err := strconv.ParseFloat(s.HGet("lock:k", field), 64); err == nil {
					t.Errorf("%s is %q", field, s.HGet("lock:k", field))
				}
			}
		}
		const digits = "0123456789012345"
		k := take(t, background, l, "k", adapter.Attempt(digits, kept, false))
		check()
		answer(t, k, "42")
		check()
		answer(t, func() *core.Lock {
			s.Del("lock:k")
			return take(t, background, l, "k", adapter.Attempt(digits, kept, false))
		}(), "")
		check()
	})
}

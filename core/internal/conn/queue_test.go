//go:build go1.25

package conn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// received is what a Recipient was told.
type received struct {
	reply conn.Reply
	err   error
	at    time.Time
}

// inbox keeps what it receives.
type inbox chan received

func (i inbox) Receive(r conn.Reply, err error) { i <- received{r, err, time.Now()} }

// flush queues the commands and sends them.
func flush(s *conn.Server, timeout time.Duration, commands ...*conn.Command) []inbox {
	inboxes := make([]inbox, len(commands))
	for i, c := range commands {
		inboxes[i] = make(inbox, 2)
		s.Queue(&conn.Queued{Command: c, Timeout: timeout, To: inboxes[i]})
	}
	s.Flush()
	return inboxes
}

func TestQueuedCommandsGoTogether(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		merge(f, s)
		began := time.Now()
		s.Queue(&conn.Queued{Command: batched("nobody wants to know"), Timeout: timeout})
		inboxes := flush(s, timeout, batched("a"), batched("bad"), batched("b"))
		s.Flush() // of nothing
		synctest.Wait()
		for i, key := range []string{"a", "bad", "b"} {
			got := <-inboxes[i]
			if (got.err != nil) != (key == "bad") || got.err == nil && got.reply.Value != key || !got.reply.Sent.Equal(began) {
				t.Errorf("%s: %v", key, got)
			}
		}
		if n := len(f.scripts()); n != 2 {
			t.Errorf("%d commands", n)
		}
	})
}

// A renewal must not use up one dead connection of a pool every now and then: its lease ends meanwhile. Of a pool
// without idle connections one more try is by a new one.
func TestQueuedCommandsAreSentAgain(t *testing.T) {
	for name, again := range map[string]error{"broken": io.EOF, "refused for now": refusal("READONLY You can't write")} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			f.fail(lost(again))
			began := time.Now()
			got := <-flush(s, timeout, batched("a"))[0]
			if got.err != nil || got.reply.Value != "a" || !got.at.Equal(began) || !got.reply.Sent.Equal(got.at) {
				t.Errorf("%s: %v after %v", name, got, got.at.Sub(began))
			}
			f.failAll(lost(again))
			began = time.Now()
			got = <-flush(s, timeout, batched("a"))[0]
			if took := got.at.Sub(began); !errors.Is(got.err, again) || took != 0 {
				t.Errorf("%s: %v after %v", name, got.err, took)
			}
			f.failAll(unsent(errDial))
			began = time.Now()
			if got = <-flush(s, timeout, batched("a"))[0]; !errors.Is(got.err, errDial) || !got.at.Equal(began) {
				t.Errorf("nothing listens: %v after %v", got.err, got.at.Sub(began))
			}
		})
	}
}

// A pipeline that is slow must not keep what is due again before it answers.
func TestQueuedCommandsEndWithTheShortestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(late(time.Minute))
		began := time.Now()
		s.Queue(&conn.Queued{Command: batched("x"), Timeout: time.Second})
		inboxes := flush(s, timeout, batched("a"), batched("b"))
		for _, in := range inboxes {
			got := <-in
			if !errors.Is(got.err, conn.ErrNoAnswer) || got.at.Sub(began) != time.Second || !got.reply.Sent.Equal(began) {
				t.Errorf("%v after %v", got.err, got.at.Sub(began))
			}
		}
		time.Sleep(time.Hour)
		for _, in := range inboxes {
			if len(in) > 0 {
				t.Error("told twice")
			}
		}
	})
}

// One pipeline of many is in flight, or other clients of that Redis wait until thousands are done. One that is slow
// holds up the next for a moment only.
func TestManyQueuedCommandsAreSpread(t *testing.T) {
	for name, c := range map[string]struct {
		slow time.Duration // the first
		want map[time.Duration]int
	}{
		"at once": {0, map[time.Duration]int{0: 512, time.Millisecond: 512, 2 * time.Millisecond: 176}},
		// The slow one of a pipeline's eight commands is the first.
		"late": {7 * time.Millisecond, map[time.Duration]int{
			0: 64, 7 * time.Millisecond: 448, 8 * time.Millisecond: 512, 9 * time.Millisecond: 176,
		}},
		"slow": {time.Second, map[time.Duration]int{0: 64, 21 * time.Millisecond: 512, 22 * time.Millisecond: 176, time.Second: 448}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
				merge(f, s)
				if c.slow > 0 {
					f.fail(late(c.slow))
				}
				var commands []*conn.Command
				for i := range 1200 {
					commands = append(commands, batched(fmt.Sprint(i)))
				}
				began := time.Now()
				inboxes := flush(s, timeout, commands...)
				for i, in := range inboxes {
					if got := <-in; got.reply.Value != fmt.Sprint(i) {
						t.Fatalf("%d: %v", i, got)
					}
				}
				at := map[time.Duration]int{}
				for _, c := range f.scripts() {
					at[c.at.Sub(began)] += c.words[2].(int)
				}
				if !maps.Equal(at, c.want) {
					t.Errorf("%v; want %v", at, c.want)
				}
			})
		})
	}
}

// What the server that should have a key does not do goes once more, whole.
func TestQueuedCommandsAreRedirected(t *testing.T) {
	for _, err := range []string{"NOSCRIPT no script", "MOVED 1 127.0.0.1:2", "ASK 1 127.0.0.1:2"} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			f.fail(lost(refusal(err)))
			inboxes := flush(s, timeout, batched("a"), batched("b"))
			for i, key := range []string{"a", "b"} {
				if got := <-inboxes[i]; got.err != nil || got.reply.Value != key {
					t.Errorf("%s: %v", key, got)
				}
			}
			if scripts := f.scripts(); len(scripts) != 3 || scripts[2].words[0] != "eval" || scripts[2].words[3] != "a" {
				t.Errorf("%v", scripts)
			}
		})
	}
}

func TestQueuedCommandsForRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:2"}, HeartbeatFrequency: time.Hour})
		var mu sync.Mutex
		shards := map[redis.UniversalClient]*fake{}
		if err := ring.ForEachShard(background, func(_ context.Context, c *redis.Client) error {
			f := &fake{client: c}
			c.AddHook(f)
			mu.Lock()
			defer mu.Unlock()
			shards[c] = f
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s := conn.New(ring, config())
		var commands []*conn.Command
		for _, key := range numbered(20) {
			commands = append(commands, batched(key))
		}
		for i, in := range flush(s, timeout, commands...) {
			if got := <-in; got.reply.Value != commands[i].Words[0] {
				t.Errorf("%v", got)
			}
		}
		for client, f := range shards {
			if len(f.scripts()) == 0 {
				t.Error("a shard was not asked")
			}
			for _, c := range f.scripts() {
				if key := c.words[3].(string); s.ClientFor(key) != client {
					t.Errorf("%s went elsewhere", key)
				}
			}
		}
		_ = ring.Close()
	})
}

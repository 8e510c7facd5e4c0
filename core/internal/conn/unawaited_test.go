package conn_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// toldOf is what a Recipient was told of its command.
type toldOf struct {
	replies []conn.Reply
	errs    []error
	at      time.Time
}

func (r *toldOf) Receive(reply conn.Reply, err error) {
	r.replies, r.errs, r.at = append(r.replies, reply), append(r.errs, err), time.Now()
}

// begin begins a command for each key.
func begin(s *conn.Server, keys ...string) (us []conn.Unawaited, all []*toldOf) {
	var cs []*conn.Command
	var to []conn.Recipient
	for _, key := range keys {
		c, r := batched(key), &toldOf{}
		c.Resends = new(conn.Resends)
		cs, to, all = append(cs, c), append(to, r), append(all, r)
	}
	return s.Begin(cs, timeout, to), all
}

// starting counts the goroutines that are started.
type starting struct {
	workers
	n *atomic.Int32
}

func (w starting) Start(f func()) {
	w.n.Add(1)
	w.workers.Start(f)
}

// The Recipient is told once what Do would return: of a command that is sent again, that is late, or never answered, too. Only one that
// failed has a goroutine of its own.
func TestBegin(t *testing.T) {
	for name, test := range map[string]struct {
		fault fault
		want  any // a value, or an outcome
		sent  int
	}{
		"answered":            {succeed, "k", 1},
		"a broken connection": {lost(io.EOF), "k", 2},
		"a hook panics":       {func(context.Context, func() []any) (any, error) { panic("no") }, "k", 1},
		"refused":             {unsent(refusal("NOPERM no")), conn.Refused, 0},
		"answered too late":   {late(timeout + time.Second), conn.Unknown, 1},
		"not answered": {func(ctx context.Context, write func() []any) (any, error) {
			write()
			<-ctx.Done()
			return nil, ctx.Err()
		}, conn.Unknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, _ *conn.Server) {
				with, started := config(), new(atomic.Int32)
				with.Workers = starting{n: started}
				s := conn.New(f.client, with)
				f.fail(test.fault)
				began := time.Now()
				us, all := begin(s, "k")
				time.Sleep(timeout)
				if synctest.Wait(); name == "not answered" && !s.IsSilent(timeout) {
					t.Error("Redis is not silent")
				}
				time.Sleep(timeout)
				synctest.Wait()
				r := all[0]
				if len(r.errs) != 1 || r.at.Sub(began) > timeout {
					t.Fatalf("told %d times, after %v", len(r.errs), r.at.Sub(began))
				}
				if want, fails := test.want.(conn.Outcome); fails {
					wantFailure(t, r.errs[0], want, nil)
				} else if r.errs[0] != nil || r.replies[0].Value != test.want || !r.replies[0].Sent.Equal(began) && test.sent == 1 {
					t.Errorf("%v, %v", r.replies[0], r.errs[0])
				}
				if n := len(f.scripts()); n != test.sent {
					t.Errorf("sent %d times", n)
				}
				if n := started.Load(); (n > 0) != (name != "answered") {
					t.Errorf("%d goroutines", n)
				}
				if us[0].Withdraw() {
					t.Error("it was withdrawn after that")
				}
			})
		})
	}
}

// Those that begin together go together.
func TestBeginSeveral(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		merge(f, s)
		before := len(f.scripts())
		_, all := begin(s, "a", "b", "c")
		synctest.Wait()
		for i, key := range []string{"a", "b", "c"} {
			if r := all[i]; len(r.errs) != 1 || r.replies[0].Value != key {
				t.Errorf("%s was told %v", key, *r)
			}
		}
		if n := len(f.scripts()) - before; n != 1 {
			t.Errorf("sent by %d commands", n)
		}
		time.Sleep(time.Minute)
	})
}

// What is withdrawn is not sent, and nobody hears of it. What is on its way cannot be withdrawn.
func TestWithdraw(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		fill(f, s, 4*time.Millisecond)
		before := len(f.scripts())
		f.fail(late(time.Second))
		us, all := begin(s, "a", "b")
		if synctest.Wait(); len(f.scripts()) > before {
			t.Fatal("they are on their way; the test shows nothing")
		}
		if !us[0].Withdraw() || us[0].Withdraw() {
			t.Error("not withdrawn once")
		}
		time.Sleep(500 * time.Millisecond)
		if us[1].Withdraw() {
			t.Error("withdrawn on its way")
		}
		time.Sleep(2 * timeout)
		synctest.Wait()
		if len(all[0].errs) != 0 || len(all[1].errs) != 1 || all[1].replies[0].Value != "b" {
			t.Errorf("received: %v, %v", *all[0], *all[1])
		}
		if n := len(f.scripts()) - before; n != 1 {
			t.Errorf("%d were sent", n)
		}
	})
}

//go:build go1.25

package conn_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// toldOf is what a Recipient was told of its command.
type toldOf struct {
	replies []conn.Reply
	errs    []error
}

func (r *toldOf) Receive(reply conn.Reply, err error) {
	r.replies, r.errs = append(r.replies, reply), append(r.errs, err)
}

// begin begins a command for each key.
func begin(s *conn.Server, keys ...string) (qs []*conn.Queued, all []*toldOf) {
	for _, key := range keys {
		r := &toldOf{}
		q := &conn.Queued{Command: batched(key), Timeout: timeout, To: r}
		s.Begin(q)
		qs, all = append(qs, q), append(all, r)
	}
	return qs, all
}

// The recipient is told once what became of the command, which is sent once.
func TestBegin(t *testing.T) {
	for name, test := range map[string]struct {
		fault fault
		want  any // a value, or an outcome
		sent  int
	}{
		"answered":            {succeed, "k", 1},
		"a broken connection": {lost(io.EOF), conn.Unknown, 1},
		"refused":             {unsent(refusal("NOPERM no")), conn.Refused, 0},
		"a hook panics":       {func(context.Context, func() []any) (any, error) { panic("no") }, conn.Unknown, 0},
		"not answered": {func(ctx context.Context, write func() []any) (any, error) {
			write()
			end, _ := ctx.Deadline()
			time.Sleep(time.Until(end))
			return nil, context.DeadlineExceeded
		}, conn.Unknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
				f.fail(test.fault)
				began := time.Now()
				qs, all := begin(s, "k")
				time.Sleep(timeout)
				if synctest.Wait(); name == "not answered" && !s.IsSilent(timeout) {
					t.Error("Redis is not silent")
				}
				r := all[0]
				if len(r.errs) != 1 || !r.replies[0].Sent.Equal(began) {
					t.Fatalf("told %d times, of what was sent %v", len(r.errs), r.replies)
				}
				if want, fails := test.want.(conn.Outcome); !fails && (r.errs[0] != nil || r.replies[0].Value != test.want) ||
					fails && (r.errs[0] == nil || outcome(r.errs[0]) != want) {
					t.Errorf("%v, %v", r.replies[0], r.errs[0])
				}
				if n := len(f.scripts()); n != test.sent {
					t.Errorf("sent %d times", n)
				}
				if s.Withdraw(qs[0]) {
					t.Error("it was withdrawn after that")
				}
			})
		})
	}
}

// Those that begin together go together, also with others that somebody waits for.
func TestBeginSeveral(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		merge(f, s)
		fill(f, s, time.Millisecond)
		before := len(f.scripts())
		_, all := begin(s, "a", "b")
		results := start(background, s, "c")
		time.Sleep(time.Second)
		synctest.Wait()
		wantValues(t, results)
		for i, key := range []string{"a", "b"} {
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
		qs, all := begin(s, "a", "b")
		if synctest.Wait(); len(f.scripts()) > before {
			t.Fatal("they are on their way; the test shows nothing")
		}
		if !s.Withdraw(qs[0]) || s.Withdraw(qs[0]) {
			t.Error("not withdrawn once")
		}
		time.Sleep(500 * time.Millisecond)
		if s.Withdraw(qs[1]) {
			t.Error("withdrawn on its way")
		}
		time.Sleep(2 * timeout)
		synctest.Wait()
		if len(all[0].errs) != 0 || len(all[1].errs) != 1 || all[1].replies[0].Value != "b" {
			t.Errorf("told: %v, %v", *all[0], *all[1])
		}
		if n := len(f.scripts()) - before; n != 1 {
			t.Errorf("%d were sent", n)
		}
	})
}

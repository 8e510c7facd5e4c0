//go:build go1.25

package core_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// quorumOf is a Locker on several embedded servers.
func quorumOf(t *testing.T, servers []*embedded) *core.Locker {
	t.Helper()
	var clients []redis.UniversalClient
	for _, s := range servers {
		clients = append(clients, s.client())
	}
	l, err := core.NewQuorum(clients, core.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, l)
	return l
}

// One member lacks the lock and one is silent: nobody knows. That is not a loss, and
// not a free lock.
func TestQuorumInspectOfADividedQuorumIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := []*embedded{newEmbedded(t), newEmbedded(t), newEmbedded(t)}
		l := quorumOf(t, servers)
		servers[2].failAll(refuse("LOADING Redis is loading"), acquire)
		k := take(t, background, l, "k")
		time.Sleep(time.Second)
		servers[2].heal()
		servers[1].failAll(refuse("LOADING Redis is loading"), inspect)
		_, err := k.Count(background)
		wantErr(t, err, core.ErrUnavailable)
		_, err = l.Inspect(background, "k")
		wantErr(t, err, core.ErrUnavailable)
		if err := k.Context().Err(); err != nil {
			t.Errorf("lost: %v", context.Cause(k.Context()))
		}
		servers[1].heal()
		unlock(t, k)
	})
}

// The locks of a quorum are exclusive. Whoever asks for another form is told so, and gets none.
func TestQuorumKnowsNoForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := []*embedded{newEmbedded(t), newEmbedded(t), newEmbedded(t)}
		l := quorumOf(t, servers)
		attempt := func(what string, opts ...core.Option) {
			opts = append(opts, core.NoWait())
			k, err := l.Lock(background, "k", opts...)
			if err == nil || k != nil || !strings.Contains(err.Error(), "quorum") {
				t.Fatalf("%s: %v, %v", what, k, err)
			}
			m, err := l.LockAll(background, []string{"k", "l"}, opts...)
			if err == nil || m != nil {
				t.Fatalf("%s of several keys: %v, %v", what, m, err)
			}
		}
		attempt("shared", core.Shared())
		attempt("a permit", core.Permits(2))
		if k, err := l.Resume(background, "k", "ticket"); err == nil || !strings.Contains(err.Error(), "quorum") {
			t.Errorf("Resume: %v, %v", k, err)
		}
		k := take(t, background, l, "k")
		if ticket, err := k.Handover(background, time.Minute); err == nil || ticket != "" || !strings.Contains(err.Error(), "NewQuorum") {
			t.Errorf("Handover: %q, %v", ticket, err)
		}
		time.Sleep(time.Minute) // it is held as before
		if err := k.Context().Err(); err != nil {
			t.Errorf("lost: %v", context.Cause(k.Context()))
		}
		unlock(t, k)
	})
}

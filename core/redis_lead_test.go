package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A leader that dies is followed within a lease, and not while it lives.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stalls := redistest.WatchStalls(t)
	leader := startHolder(t, leaderEnv, server)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	leads, done := make(chan time.Time, 1), make(chan error, 1)
	l := onRedis(t, server.Client(t))
	go func() {
		done <- l.Lead(ctx, "k", func(ctx context.Context) error {
			leads <- time.Now()
			<-ctx.Done()
			return nil
		})
	}()
	awaitRenewed(t, server.Client(t), "k", time.Now(), holderLease)
	if len(leads) > 0 {
		t.Fatal("two lead")
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	select {
	case at := <-leads:
		soonAfter(t, stalls, "another led", killed, at, holderLease+500*time.Millisecond)
	case <-time.After(inTheEnd):
		t.Fatal("nobody follows")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Lead: %v", err)
	}
}

// Redis is killed, and starts anew without its data: one leads again.
func TestLeadersOutliveRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	terms, done := make(chan context.Context, 10), make(chan error, 2)
	for range 2 {
		l := onRedis(t, server.Client(t), core.Lease(time.Second))
		go func() {
			done <- l.Lead(ctx, "k", func(ctx context.Context) error {
				terms <- ctx
				<-ctx.Done()
				return nil
			})
		}()
	}
	term := <-terms
	server.Kill(t)
	select {
	case <-term.Done():
		wantErr(t, context.Cause(term), core.ErrLost)
	case <-time.After(inTheEnd):
		t.Fatal("the leader is not told")
	}
	server.Restart(t)
	select {
	case <-terms:
	case <-time.After(inTheEnd):
		t.Fatal("nobody leads again")
	}
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Lead: %v", err)
		}
	}
}

//go:build go1.25

package conn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// hanging answers nothing.
func hanging(ctx context.Context, write func() []any) (any, error) {
	write()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSilence(t *testing.T) {
	ways := map[string]func(s *conn.Server){
		"cancellable": func(s *conn.Server) {
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			_, _ = s.Do(ctx, batched("k"), timeout)
		},
		"not cancellable": func(s *conn.Server) { _, _ = s.Do(background, batched("k"), timeout) },
		"queued":          func(s *conn.Server) { <-flush(s, timeout, batched("k"))[0] },
	}
	for name, do := range ways {
		for _, answer := range []fault{reply("done"), lost(refusal("NOPERM"))} {
			bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
				f.failAll(hanging)
				began := time.Now()
				do(s)
				synctest.Wait()
				if took := time.Since(began); !s.IsSilent(took) || s.IsSilent(took+1) {
					t.Errorf("%s: it was asked %v ago", name, took)
				}
				time.Sleep(time.Minute)
				do(s)
				if !s.IsSilent(time.Since(began)) {
					t.Errorf("%s: it has not answered since", name)
				}
				f.failAll(lost(refusal("LOADING")))
				do(s)
				if synctest.Wait(); !s.IsSilent(time.Since(began)) {
					t.Errorf("%s: what passes is no answer", name)
				}
				f.failAll(answer)
				do(s)
				if synctest.Wait(); s.IsSilent(0) {
					t.Errorf("%s: it has answered", name)
				}
			})
		}
	}
}

func TestAnswerToAPipelineEndsSilence(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		fill(f, s, time.Second)
		wantValues(t, start(ctx, s, "a", "b"))
		if synctest.Wait(); s.IsSilent(0) {
			t.Error("it has answered")
		}
	})
}

// A caller who gives up early learns whether that was his own haste.
func TestSilenceBeforeTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(hanging)
		ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
		defer cancel()
		_, _ = s.Do(ctx, batched("k"), timeout)
		if s.IsSilent(timeout) || !s.IsSilent(100*time.Millisecond) {
			t.Error("it was asked 100 ms ago")
		}
	})
}

// Calls that were given up early say nothing about a Redis that is asked again much later.
func TestHasteIsNoSilence(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(hanging)
		for range 2 {
			ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
			_, _ = s.Do(ctx, batched("k"), timeout)
			cancel()
			if s.IsSilent(timeout) {
				t.Error("nobody has waited for it")
			}
			time.Sleep(time.Minute)
		}
	})
}

func replicated() conn.Config {
	c := config()
	c.Replicas = conn.Replicas{N: 2, Within: 300 * time.Millisecond}
	return c
}

func replicatedCommand(compensated *atomic.Int32) *conn.Command {
	s := conn.NewScript("a script")
	s.Replicate, s.Did = true, did
	return &conn.Command{Script: s, Keys: 1, Words: []any{"k"}, Compensator: counter{compensated}}
}

func TestReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		reply    string
		have     int
		err      string
		replaced bool
	}{
		"enough":         {reply: "done", have: 2},
		"too few":        {reply: "done", have: 1, err: "1 of 2 replicas have the lock"},
		"nothing done":   {reply: "nothing", have: 0},
		"unknown script": {reply: "done", have: 2, replaced: true},
	} {
		bubble(t, func(t *testing.T, f *fake, _ *conn.Server) {
			s := conn.New(f.client, replicated())
			f.replicas = c.have
			if c.replaced {
				f.fail(lost(refusal("NOSCRIPT")))
			}
			f.fail(reply(c.reply))
			var compensated atomic.Int32
			r, err := s.Do(background, replicatedCommand(&compensated), timeout)
			if c.err == "" && (err != nil || r.Value != c.reply || compensated.Load() != 0) {
				t.Errorf("%s: %v, %v", name, r.Value, err)
			}
			if c.err != "" {
				wantFailure(t, err, conn.Unknown, nil)
				if err.Error() != c.err || compensated.Load() != 1 {
					t.Errorf("%s: %v, %d compensations", name, err, compensated.Load())
				}
			}
			if c.replaced {
				f.fail(lost(refusal("NOSCRIPT")))
			}
			f.fail(reply(c.reply))
			got := <-flush(s, timeout, replicatedCommand(&compensated))[0]
			if (got.err == nil) != (c.err == "") || got.err != nil && got.err.Error() != c.err {
				t.Errorf("%s: %v", name, got)
			}
			if n := len(f.waits); n != 2 && !c.replaced || n != 4 && c.replaced {
				t.Errorf("%s: %d times WAIT", name, n)
			}
			for _, wait := range f.waits {
				if wait[1] != 2 || wait[2] != int64(300) {
					t.Errorf("%v", wait)
				}
			}
		})
	}
}

// Who needs no replicas must not wait for them.
// The error of WAIT is no refusal of the script, which has run.
func TestReplicasOfWhichNobodyKnows(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, _ *conn.Server) {
		s := conn.New(f.client, replicated())
		f.replicas = -1
		f.fail(reply("done"))
		var compensated atomic.Int32
		_, err := s.Do(background, replicatedCommand(&compensated), timeout)
		wantFailure(t, err, conn.Unknown, refusal("LOADING Redis is loading"))
		if err.Error() != "whether 2 replicas have the lock is unknown: LOADING Redis is loading" || compensated.Load() != 1 {
			t.Errorf("%v, %d compensations", err, compensated.Load())
		}
	})
}

func TestScriptsThatReplicasNeedNotHave(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, _ *conn.Server) {
		s := conn.New(f.client, replicated())
		if _, err := s.Do(background, batched("k"), timeout); err != nil {
			t.Error(err)
		}
		if len(f.waits) > 0 {
			t.Error("it has waited")
		}
	})
}

// A cluster's nodes are many, and may be asked by its client only.
func TestClocksAreComparedOnceAndNotInACluster(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, _ *conn.Server) {
		cluster := clusterOf(f, new(atomic.Int32), &atomic.Pointer[error]{})
		for _, c := range []struct {
			client redis.UniversalClient
			config conn.Config
			want   int32
		}{{f.client, config(), 0}, {cluster, replicated(), 0}, {f.client, replicated(), 1}} {
			s := conn.New(c.client, c.config)
			f.replicas = 2
			for range 3 {
				if _, err := s.Do(background, batched("k"), timeout); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			if n := f.infos.Load(); n != c.want {
				t.Errorf("%T, %+v: asked %d times", c.client, c.config.Replicas, n)
			}
		}
		_ = cluster.Close()
		time.Sleep(time.Minute)
	})
}

func TestReplicasCheck(t *testing.T) {
	client := redis.NewClient(&redis.Options{ReadTimeout: time.Second})
	defer client.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{}})
	defer ring.Close()
	for _, c := range []struct {
		replicas conn.Replicas
		client   redis.UniversalClient
		want     string
	}{
		{conn.Replicas{}, ring, ""},
		{conn.Replicas{N: 1, Within: 500 * time.Millisecond}, client, ""},
		{conn.Replicas{N: 1, Within: 500 * time.Millisecond}, ring,
			"core: Replicas needs a *redis.Client or *redis.ClusterClient, got *redis.Ring"},
		{conn.Replicas{N: 1, Within: 2 * time.Second}, client, "core: Replicas(1, 2s): the time must be less than Timeout, which is 2s"},
		{conn.Replicas{N: 1, Within: time.Second}, client,
			"core: Replicas(1, 1s): the time must be less than the client's ReadTimeout, which is 1s"},
	} {
		got := ""
		if err := c.replicas.Check(c.client, timeout); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v: %q; want %q", c.replicas, got, c.want)
		}
	}
}

// However many ask a cluster of which nothing is known yet, one looks, and nobody waits
// longer than he wants to.
func TestClusterThatCannotBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		over := make(chan struct{})
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"},
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				<-over
				return nil, io.EOF
			}})
		s := conn.New(cluster, config())
		if s.ClientFor("k") != cluster {
			t.Error("it knows a node")
		}
		in := flush(s, 300*time.Millisecond, batched("k"))[0]
		began := time.Now()
		for range 10 {
			ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
			_, err := s.Do(ctx, batched("k"), timeout)
			wantFailure(t, err, conn.NotSent, context.DeadlineExceeded)
			cancel()
		}
		wantTime(t, "ten calls ended", began, 200*time.Millisecond)
		if got := <-in; !errors.Is(got.err, conn.ErrNoAnswer) || got.at.Sub(began) != 300*time.Millisecond {
			t.Error(got)
		}
		began = time.Now()
		_, err := s.Do(background, batched("k"), 100*time.Millisecond)
		wantTime(t, "a call ended", began, 100*time.Millisecond)
		wantFailure(t, err, conn.NotSent, conn.ErrNoAnswer)
		if n := dials.Load(); n != 1 {
			t.Errorf("%d dials", n)
		}
		close(over)
		time.Sleep(time.Minute)
		_ = cluster.Close()
	})
}

// clusterOf is a client of a cluster of two nodes, which f stands for. err, unless nil,
// is why it knows none.
func clusterOf(f *fake, asked *atomic.Int32, err *atomic.Pointer[error]) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			asked.Add(1)
			if err := err.Load(); err != nil {
				return nil, *err
			}
			return []redis.ClusterSlot{
				{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}},
				{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:2"}}},
			}, nil
		},
		NewClient: func(o *redis.Options) *redis.Client {
			client := redis.NewClient(o)
			client.AddHook(f)
			return client
		},
	})
}

func TestClusterThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		var asked atomic.Int32
		var why atomic.Pointer[error]
		why.Store(&io.ErrNoProgress)
		cluster := clusterOf(f, &asked, &why)
		s := conn.New(cluster, config())
		_, err := s.Do(background, batched("k"), timeout)
		wantFailure(t, err, conn.NotSent, io.ErrNoProgress)
		why.Store(nil)
		time.Sleep(time.Second)
		if _, err := s.Do(background, batched("k"), timeout); err != nil {
			t.Error(err)
		}
		if s.ClientFor("k") == cluster || s.ClientFor("k") == s.ClientFor("other") {
			t.Error("it does not know the nodes")
		}
		_ = cluster.Close()
		time.Sleep(time.Minute)
	})
}

// By itself go-redis finds out about a failover a minute later.
func TestClusterIsLookedAtAgainAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		var asked atomic.Int32
		cluster := clusterOf(f, &asked, &atomic.Pointer[error]{})
		s := conn.New(cluster, config())
		if _, err := s.Do(background, batched("k"), timeout); err != nil {
			t.Error(err)
		}
		for _, c := range []struct {
			err  error
			want int32
		}{{refusal("NOPERM"), 0}, {io.ErrNoProgress, 1}} {
			before := asked.Load()
			for range 3 {
				f.fail(lost(c.err))
				_, _ = s.Do(background, batched("k"), timeout)
				time.Sleep(300 * time.Millisecond)
			}
			if n := asked.Load() - before; n != c.want {
				t.Errorf("%v: looked %d times", c.err, n)
			}
		}
		_ = cluster.Close()
		time.Sleep(time.Minute)
	})
}

// The client of a node that has left the cluster is closed.
func TestNodeThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		cluster := clusterOf(f, new(atomic.Int32), &atomic.Pointer[error]{})
		s := conn.New(cluster, config())
		f.fail(succeed, unsent(redis.ErrClosed))
		if _, err := s.Do(background, batched("k"), timeout); err != nil {
			t.Error(err)
		}
		if got := <-flush(s, timeout, batched("k"))[0]; got.err != nil {
			t.Error(got.err)
		}
		_ = cluster.Close()
		time.Sleep(time.Minute)
	})
}

func TestSame(t *testing.T) {
	at := func(o redis.Options) *redis.Client {
		c := redis.NewClient(&o)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	a := at(redis.Options{Addr: "127.0.0.1:1"})
	sentinel := func() *redis.Client {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for name, c := range map[string]struct {
		a, b redis.UniversalClient
		want bool
	}{
		"itself":           {a, a, true},
		"same address":     {a, at(redis.Options{Addr: "127.0.0.1:1"}), true},
		"other address":    {a, at(redis.Options{Addr: "127.0.0.1:2"}), false},
		"other database":   {a, at(redis.Options{Addr: "127.0.0.1:1", DB: 1}), false},
		"Sentinel clients": {sentinel(), sentinel(), false},
	} {
		if conn.Same(c.a, c.b) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want conn.Outcome
	}{
		{io.EOF, conn.Unknown},
		{refusal("NOPERM"), conn.Refused},
		{refusal("ERR Connection timed out"), conn.Unknown},
		{redis.ErrClosed, conn.Refused},
		{errors.Join(io.EOF, &conn.Failure{Outcome: conn.NotSent, Cause: refusal("NOPERM")}), conn.NotSent},
		{conn.Failed(redis.ErrClosed), conn.Refused},
	} {
		if got := conn.OutcomeOf(c.err); got != c.want {
			t.Errorf("%v: %v; want %v", c.err, got, c.want)
		}
	}
	if !conn.IsClosed(conn.Failed(redis.ErrClosed)) || conn.IsClosed(io.EOF) {
		t.Error("IsClosed")
	}
}

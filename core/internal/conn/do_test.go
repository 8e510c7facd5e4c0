//go:build go1.25

package conn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

var errDial = &net.OpError{Op: "dial", Err: errors.New("refused")}

func TestLostReplyIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		slowly := func(ctx context.Context, write func() []any) (any, error) {
			write()
			time.Sleep(time.Second)
			return nil, io.EOF
		}
		f.fail(slowly, lost(io.EOF), reply("done"))
		c, compensated := counted(new(conn.Resends))
		r, err := s.Do(background, c, timeout)
		if err != nil || r.Value != "done" {
			t.Fatalf("%v, %v", r, err)
		}
		scripts := f.scripts()
		if len(scripts) != 3 || !reflect.DeepEqual(scripts[0].words, scripts[2].words) {
			t.Errorf("sent %v", scripts)
		}
		if !c.Resends.MayArriveTwice() {
			t.Error("a copy may still arrive")
		}
		if compensated.Load() != 0 {
			t.Error("it was compensated although it was done")
		}
		if r.Sent.After(scripts[2].at) || r.Sent.Before(scripts[1].at) {
			t.Errorf("sent at %v; want the time of the last copy, %v", r.Sent, scripts[2].at)
		}
	})
}

func TestCopiesEndWithTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(lost(io.EOF))
		c, compensated := counted(new(conn.Resends))
		began := time.Now()
		_, err := s.Do(background, c, timeout)
		wantFailure(t, err, conn.Unknown, io.EOF)
		if took := time.Since(began); took > timeout || took < timeout-50*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if n := len(f.scripts()); n > 200 || compensated.Load() != 1 {
			t.Errorf("%d copies, %d compensations", n, compensated.Load())
		}
	})
}

func TestCommandWithoutCopiesIsSentOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.fail(lost(io.EOF))
		c, compensated := counted(nil)
		_, err := s.Do(background, c, timeout)
		wantFailure(t, err, conn.Unknown, io.EOF)
		if len(f.scripts()) != 1 || compensated.Load() != 1 || c.Resends.MayArriveTwice() {
			t.Errorf("sent %d times, compensated %d times", len(f.scripts()), compensated.Load())
		}
	})
}

// go-redis may keep the context of a copy for what it does in the background.
func TestContextOfACopyEndsWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		var first context.Context
		f.fail(func(ctx context.Context, write func() []any) (any, error) {
			write()
			first = ctx
			return nil, io.EOF
		}, func(ctx context.Context, write func() []any) (any, error) {
			if first.Err() == nil || ctx.Err() != nil {
				t.Errorf("during the second copy: the first's %v, its own %v", first.Err(), ctx.Err())
			}
			return write()[3], nil
		})
		c, _ := counted(new(conn.Resends))
		if _, err := s.Do(background, c, timeout); err != nil {
			t.Error(err)
		}
	})
}

// The answer to a command that was given up is not that of the next one.
func TestAnswerForACommandThatWasGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		for range 20 { // under the race detector not all memory is used again
			f.fail(late(10*time.Millisecond), late(20*time.Millisecond))
			ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
			_, _ = s.Do(ctx, batched("a"), timeout)
			cancel()
			wantValues(t, start(background, s, "b"))
		}
	})
}

// That the time of a command is over, just as its answer comes, is nothing to the next one.
func TestAnswerAtTheLastMoment(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		for range 100 { // which comes first is left to chance
			ctx, cancel := context.WithCancel(background)
			f.fail(late(timeout))
			_, _ = s.Do(ctx, batched("a"), timeout)
			wantValues(t, start(ctx, s, "b"))
			cancel()
		}
	})
}

// Nor is that its caller leaves just then.
func TestCallerThatLeavesAsItsAnswerComes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		for range 100 {
			ctx, cancel := context.WithCancel(background)
			f.fail(func(_ context.Context, write func() []any) (any, error) {
				write()
				cancel()
				return "a", nil
			}, func(ctx context.Context, write func() []any) (any, error) {
				write()
				time.Sleep(time.Millisecond)
				return "b", ctx.Err()
			})
			_, _ = s.Do(ctx, batched("a"), timeout)
			if _, err := s.Do(background, batched("b"), timeout); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestWhatNeverLeftIsSentOnceMore(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.fail(unsent(errDial), reply("done"))
		c, compensated := counted(new(conn.Resends))
		if r, err := s.Do(background, c, timeout); err != nil || r.Value != "done" || c.Resends.MayArriveTwice() {
			t.Error(r, err, c.Resends.MayArriveTwice())
		}
		f.fail(unsent(errDial), unsent(errDial), reply("too late"))
		_, err := s.Do(background, c, timeout)
		wantFailure(t, err, conn.NotSent, errDial)
		if compensated.Load() != 0 {
			t.Error("what never left was compensated")
		}
	})
}

func TestCopiesAfterOneThatNeverLeft(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.fail(lost(io.EOF), unsent(errDial), reply("done"))
		c, _ := counted(new(conn.Resends))
		if r, err := s.Do(background, c, timeout); err != nil || r.Value != "done" || !c.Resends.MayArriveTwice() {
			t.Error(r, err, c.Resends.MayArriveTwice())
		}
	})
}

// Only what may work in a moment is worth another copy.
func TestWhichFailuresAreRepeated(t *testing.T) {
	for err, repeated := range map[error]bool{
		io.ErrUnexpectedEOF: true,
		io.ErrClosedPipe:    true,
		net.ErrClosed:       true,
		&net.OpError{Op: "read", Err: errors.New("reset")}:             true,
		&net.OpError{Op: "write", Err: errors.New("broken pipe")}:      true,
		&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}:          false,
		&net.OpError{Op: "dial", Err: errors.New("later than writes")}: false,
		errors.New("anything else"):                                    false,
	} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			f.fail(lost(err), reply("done"))
			c, _ := counted(new(conn.Resends))
			if _, got := s.Do(background, c, timeout); (got == nil) != repeated || len(f.scripts()) == 2 != repeated {
				t.Errorf("%v: sent %d times", err, len(f.scripts()))
			}
		})
	}
}

func TestCommandGivenUpBetweenCopies(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(lost(refusal("TRYAGAIN")))
		ctx, cancel := context.WithTimeoutCause(background, 10*time.Millisecond, refusal("READONLY of another command"))
		defer cancel()
		c, _ := counted(new(conn.Resends))
		began := time.Now()
		_, err := s.Do(ctx, c, timeout)
		wantFailure(t, err, conn.Unknown, context.DeadlineExceeded)
		wantTime(t, "it returned", began, 10*time.Millisecond)
	})
}

func TestRefusals(t *testing.T) {
	ofHook := fmt.Errorf("a hook: %w", refusal("OOM command not allowed"))
	for _, err := range []error{refusal("NOPERM"), refusal("ERR unknown command 'evalsha'"), ofHook} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			f.fail(lost(err), lost(io.EOF), lost(err))
			c, compensated := counted(new(conn.Resends))
			_, got := s.Do(background, c, timeout)
			wantFailure(t, got, conn.Refused, err)
			if compensated.Load() != 0 {
				t.Error("what did nothing was compensated")
			}
			_, got = s.Do(background, c, timeout)
			wantFailure(t, got, conn.Unknown, err)
			if compensated.Load() != 1 {
				t.Errorf("the copy before was compensated %d times", compensated.Load())
			}
			f.fail(unsent(err), succeed)
			_, got = s.Do(background, c, timeout)
			wantFailure(t, got, conn.Refused, err)
		})
	}
}

func TestClientThatIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		c, compensated := counted(new(conn.Resends))
		f.failAll(unsent(redis.ErrClosed))
		_, err := s.Do(background, c, timeout)
		if wantFailure(t, err, conn.Refused, redis.ErrClosed); compensated.Load() != 0 {
			t.Error("what never left was compensated")
		}
		f.failAll(lost(redis.ErrClosed)) // meanwhile
		_, err = s.Do(background, c, timeout)
		if wantFailure(t, err, conn.Unknown, redis.ErrClosed); compensated.Load() != 1 {
			t.Errorf("%d compensations", compensated.Load())
		}
	})
}

// The copy that was answered found the lock taken; the one before may yet find it free.
func TestCopyThatDidNothingIsNoAnswerForTheOneBefore(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.fail(lost(io.EOF), reply("nothing"))
		c, compensated := counted(new(conn.Resends))
		r, err := s.Do(background, c, timeout)
		if err != nil || r.Value != "nothing" || compensated.Load() != 1 {
			t.Errorf("%v, %v, %d compensations", r.Value, err, compensated.Load())
		}
	})
}

// What Redis has refused for a moment is sent again, until the time is over.
func TestRefusalsThatPass(t *testing.T) {
	for _, text := range []string{
		"READONLY You can't write against a read only replica.", "LOADING Redis is loading", "MASTERDOWN Link with MASTER is down",
		"CLUSTERDOWN The cluster is down", "TRYAGAIN multiple keys", "BUSY Redis is busy running a script", "NOREPLICAS Not enough good replicas",
		"ERR max number of clients reached", "ERR Error running script (call to f_1): @user_script:3: @user_script: 3: -READONLY You can't write",
	} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			again, second, most := refusal(text), 20*time.Millisecond+250*time.Microsecond, 12
			switch {
			case text == "TRYAGAIN multiple keys": // a slot moves in a moment
				second, most = 750*time.Microsecond, 200
			case strings.Contains(text, "READONLY"): // the next connection may lead to another server
				second = 250 * time.Microsecond
			}
			f.fail(lost(again), lost(again), reply("done"))
			c, compensated := counted(new(conn.Resends))
			began := time.Now()
			if _, err := s.Do(background, c, timeout); err != nil {
				t.Error(err)
			}
			wantTime(t, "it was there", began, second)
			if c.Resends.MayArriveTwice() || compensated.Load() > 0 {
				t.Error("what was refused cannot arrive any more")
			}
			f.failAll(lost(again))
			asked := time.Now()
			_, err := s.Do(background, c, timeout)
			wantFailure(t, err, conn.Refused, again)
			if all := f.scripts(); all[len(all)-1].at.Sub(asked) < timeout*3/4 {
				t.Errorf("the last copy went after %v", all[len(all)-1].at.Sub(asked))
			}
			if took := time.Since(began); took < timeout*3/4 || took > timeout+time.Millisecond || len(f.scripts()) > most {
				t.Errorf("%v, %d copies", took, len(f.scripts()))
			}
			began = time.Now()
			c.Resends = nil
			if _, err := s.Do(background, c, timeout); !conn.IsTransient(err) {
				t.Error(err)
			}
			wantTime(t, "what is sent once was refused", began, 0)
		})
	}
}

// A pool with fewer connections than it is told to have, by MaxActiveConns, says at once that none is left.
func TestPoolThatHasNoConnectionLeft(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.fail(slices.Repeat([]fault{unsent(redis.ErrPoolExhausted)}, 3)...)
		if _, err := s.Do(background, batched("k"), timeout); !errors.Is(err, redis.ErrPoolExhausted) {
			t.Errorf("one that is sent once: %v", err)
		}
		c, _ := counted(new(conn.Resends))
		if _, err := s.Do(background, c, timeout); err != nil {
			t.Error(err)
		}
	})
}

// A proxy has errors of its own, for a server that may have run the script.
func TestErrorsOfWhichNobodyKnowsWhoMadeThem(t *testing.T) {
	for _, text := range []string{
		"ERR Connection timed out", "upstream failure", "ERR Error running script: the server is gone", "BUSYBODY", "ERR", "",
	} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			f.fail(lost(refusal(text)), reply("done"))
			c, compensated := counted(new(conn.Resends))
			_, err := s.Do(background, c, timeout)
			wantFailure(t, err, conn.Unknown, refusal(text))
			if compensated.Load() != 1 || len(f.scripts()) != 1 {
				t.Errorf("%q: %d compensations, sent %d times", text, compensated.Load(), len(f.scripts()))
			}
			f.fail(lost(refusal(text)))
			if got := <-flush(s, timeout, batched("k"))[0]; outcome(got.err) != conn.Unknown {
				t.Errorf("%q: %v", text, got.err)
			}
		})
	}
}

func TestCommandGivenUpAfterItWasWritten(t *testing.T) {
	for _, cause := range []error{errDial, refusal("READONLY says Redis of another command")} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) { givenUpAfterItWasWritten(t, f, s, cause) })
	}
}

func givenUpAfterItWasWritten(t *testing.T, f *fake, s *conn.Server, cause error) {
	f.fail(late(time.Second))
	ctx, cancel := context.WithCancelCause(background)
	time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
	c, compensated := counted(new(conn.Resends))
	began := time.Now()
	_, err := s.Do(ctx, c, timeout)
	wantTime(t, "it returned", began, 100*time.Millisecond)
	wantFailure(t, err, conn.Unknown, context.Canceled)
	wantFailure(t, err, conn.Unknown, cause)
	if compensated.Load() != 1 {
		t.Errorf("compensated %d times", compensated.Load())
	}
	time.Sleep(time.Minute)
	if compensated.Load() != 1 || len(f.scripts()) != 1 {
		t.Errorf("compensated %d times, sent %d times", compensated.Load(), len(f.scripts()))
	}
}

func TestCommandGivenUpBeforeItWasWritten(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.fail(func(_ context.Context, write func() []any) (any, error) {
			time.Sleep(time.Second)
			write()
			return nil, refusal("NOSCRIPT") // so that it is written twice
		})
		ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
		defer cancel()
		c, compensated := counted(new(conn.Resends))
		_, err := s.Do(ctx, c, timeout)
		wantFailure(t, err, conn.Unknown, context.DeadlineExceeded)
		if compensated.Load() != 0 {
			t.Error("compensated before it was written")
		}
		time.Sleep(time.Minute)
		if compensated.Load() != 1 || len(f.scripts()) != 2 {
			t.Errorf("compensated %d times after it was written", compensated.Load())
		}
	})
}

// The second copy leaves when nobody waits any more. What may have come of the first is compensated at once.
func TestCopyGivenUpBeforeItWasWritten(t *testing.T) {
	for first, want := range map[error]int32{refusal("READONLY You can't write"): 0, io.EOF: 1} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			f.fail(lost(first), func(ctx context.Context, write func() []any) (any, error) {
				time.Sleep(time.Second)
				return reply("done")(ctx, write)
			})
			ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
			defer cancel()
			c, compensated := counted(new(conn.Resends))
			_, err := s.Do(ctx, c, timeout)
			wantFailure(t, err, conn.Unknown, context.DeadlineExceeded)
			if n := compensated.Load(); n != want {
				t.Errorf("%v: compensated %d times before the second copy was written", first, n)
			}
			time.Sleep(time.Minute)
			if n := compensated.Load(); n != 1 {
				t.Errorf("%v: compensated %d times", first, n)
			}
		})
	}
}

// The answers that have come are kept when the time of the others is over.
func TestSomeCommandsAreAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		const together = 64 + 128 + 256 // the window doubles
		f.fail(slices.Repeat([]fault{succeed}, together)...)
		f.failAll(hanging)
		cs := make([]*conn.Command, together+1)
		for i := range cs {
			cs[i], _ = counted(nil)
		}
		answered := 0
		s.DoAll(background, cs, timeout, func(_ int, _ conn.Reply, err error) {
			if err == nil {
				answered++
			}
		})
		if answered != together {
			t.Errorf("%d were answered", answered)
		}
	})
}

func TestCommandOfACallerThatHasLeft(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		ctx, cancel := context.WithCancel(background)
		cancel()
		c, _ := counted(new(conn.Resends))
		_, err := s.Do(ctx, c, timeout)
		if wantFailure(t, err, conn.NotSent, context.Canceled); len(f.scripts()) > 0 {
			t.Error("it was sent")
		}
	})
}

func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.fail(func(ctx context.Context, write func() []any) (any, error) {
			write()
			<-ctx.Done()
			return nil, fmt.Errorf("reading: %w", ctx.Err())
		})
		c, compensated := counted(nil)
		began := time.Now()
		_, err := s.Do(background, c, timeout)
		wantTime(t, "it returned", began, timeout)
		wantFailure(t, err, conn.Unknown, conn.ErrNoAnswer)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("it is taken for the caller's deadline")
		}
		if compensated.Load() != 1 {
			t.Errorf("compensated %d times", compensated.Load())
		}
	})
}

// What go-redis works under has the caller's values, for hooks, and ends with the call.
func TestContextOfACommand(t *testing.T) {
	type key struct{}
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		var seen context.Context
		f.failAll(func(ctx context.Context, write func() []any) (any, error) {
			seen = ctx
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != timeout || ctx.Value(key{}) != "value" || ctx.Err() != nil {
				t.Error(ctx)
			}
			return reply("done")(ctx, write)
		})
		c, _ := counted(nil)
		ctx, cancel := context.WithCancel(context.WithValue(background, key{}, "value"))
		defer cancel()
		for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx)} {
			if _, err := s.Do(ctx, c, timeout); err != nil {
				t.Error(err)
			}
			<-seen.Done()
			if !errors.Is(seen.Err(), context.Canceled) {
				t.Error(seen.Err())
			}
		}
	})
}

// While go-redis has no connection for it, say, a command is given up as soon as its caller is
// gone; what that one does later is nothing to the next command.
func TestContextOfACommandEndsWithTheCallers(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
		defer cancel()
		atOnce := f.client.(*redis.Client).Options().ContextTimeoutEnabled
		for range 2 { // the second expects an answer
			if _, err := s.Do(ctx, batched("k"), timeout); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		f.fail(func(ctx context.Context, write func() []any) (any, error) {
			cancel()
			synctest.Wait()
			if ctx.Err() != nil {
				t.Error(ctx.Err())
			}
			return reply("done")(ctx, write)
		})
		if _, err := s.Do(background, batched("k"), timeout); err != nil {
			t.Error(err)
		}

		ctx, cancel = context.WithTimeout(background, 50*time.Millisecond)
		defer cancel()
		time.AfterFunc(20*time.Millisecond, cancel)
		f.fail(func(ctx context.Context, _ func() []any) (any, error) {
			if at, _ := ctx.Deadline(); atOnce != (time.Until(at) == 50*time.Millisecond) {
				t.Errorf("%v are left", time.Until(at))
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		began := time.Now()
		_, err := s.Do(ctx, batched("k"), timeout)
		wantTime(t, "it returned", began, 20*time.Millisecond)
		wantFailure(t, err, conn.Unknown, context.Canceled)
	})
}

// busyWorkers count what they are given.
type busyWorkers struct {
	workers
	begun *atomic.Int32
}

func (w busyWorkers) Begin(task interface{ Run() }) {
	w.begun.Add(1)
	w.workers.Begin(task)
}

// A goroutine costs most of what a command does.
func TestCommandThatNobodyCanCancelNeedsNoGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, _ *conn.Server) {
		c := config()
		begun := new(atomic.Int32)
		c.Workers = busyWorkers{begun: begun}
		s := conn.New(f.client, c)
		for range 10 {
			if _, err := s.Do(background, batched("k"), timeout); err != nil {
				t.Error(err)
			}
		}
		obedient := f.client.(*redis.Client).Options().ContextTimeoutEnabled
		if n := begun.Load(); n == 0 != obedient {
			t.Errorf("ContextTimeoutEnabled is %v: %d goroutines", obedient, n)
		}
	})
}

func TestScriptThatRedisDoesNotKnow(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.fail(lost(refusal("NOSCRIPT no matching script")))
		c, _ := counted(nil)
		if r, err := s.Do(background, c, timeout); err != nil || r.Value != "k" {
			t.Error(r, err)
		}
		scripts := f.scripts()
		if len(scripts) != 2 || !reflect.DeepEqual(scripts[1].words, []any{"eval", "a script", 1, "k", "arg"}) {
			t.Error(scripts)
		}
	})
}

// Whoever recovers from the panic of a hook of the client's must not keep a lock of which he knows nothing.
func TestHookThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(&redis.Options{ContextTimeoutEnabled: true})
		s := conn.New(f.client, config())
		for _, written := range []bool{true, false} {
			panics := func(_ context.Context, write func() []any) (any, error) {
				if written {
					write()
				}
				panic("no")
			}
			f.fail(panics, panics)
			c, compensated := counted(new(conn.Resends))
			_, err := s.Do(background, c, timeout)
			want, times := conn.NotSent, int32(0)
			if written {
				want, times = conn.Unknown, 1
			}
			if wantFailure(t, err, want, nil); compensated.Load() != times {
				t.Errorf("written: %v, %d compensations", written, compensated.Load())
			}
			f.faults = nil
		}
		began := time.Now()
		if _, err := s.Do(background, batched("k"), timeout); err != nil {
			t.Error(err)
		}
		wantTime(t, "the next one", began, 0)
		_ = f.client.Close()
	})
}

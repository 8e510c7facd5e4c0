//go:build go1.25

package conn_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// alone is how many requests are in flight before others share a round trip.
const alone = 2

var mergingScript = merging("a script")

// merging is a script that a merged one goes with.
func merging(text string) *conn.Script {
	s := conn.NewScript(text)
	s.Merged = conn.NewMerged("merged "+text, 1)
	return s
}

func batched(key string) *conn.Command {
	return &conn.Command{Script: mergingScript, Keys: 1, Words: []any{key, "own " + key}, MergedArgs: 1}
}

// result is what Do has returned.
type result struct {
	key   string
	value any
	err   error
}

// start calls Do for each key at once.
func start(ctx context.Context, s *conn.Server, keys ...string) <-chan result {
	results := make(chan result, len(keys))
	for _, key := range keys {
		go func() {
			r, err := s.Do(ctx, batched(key), timeout)
			results <- result{key, r.Value, err}
		}()
		synctest.Wait() // in this order
	}
	return results
}

// fill has so many requests in flight that others wait for them, for so long.
func fill(f *fake, s *conn.Server, d time.Duration) {
	for i := range alone {
		f.fail(late(d))
		start(background, s, fmt.Sprint("first", i))
	}
}

// merge lets the Server find out that it may merge calls, and that Redis has room for hundreds.
func merge(f *fake, s *conn.Server) {
	fill(f, s, 100*time.Microsecond) // Redis is near
	start(background, s, "a", "b")
	time.Sleep(time.Second)
	for range 4 {
		fill(f, s, 100*time.Microsecond)
		start(background, s, numbered(200)...)
		time.Sleep(10 * time.Millisecond)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = nil
}

func numbered(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("k", i))
	}
	return keys
}

// wantValues fails the test unless each call has its own answer.
func wantValues(t *testing.T, results <-chan result) {
	t.Helper()
	for range cap(results) {
		if r := <-results; r.err != nil || r.value != r.key {
			t.Errorf("%s: %v, %v", r.key, r.value, r.err)
		}
	}
}

// A hook of the client's that panics is a failure of what is sent just then, and of nothing else. Most goroutines of commands
// that go together are nobody's: the process would end.
func TestHookThatPanicsInAPipeline(t *testing.T) {
	panics := func(context.Context, func() []any) (any, error) { panic("no") }
	for name, test := range map[string]struct{ before, during func(f *fake, s *conn.Server) }{
		"several commands": {func(*fake, *conn.Server) {}, func(f *fake, _ *conn.Server) { f.panics = true }}, // the probe's, too
		"a batch":          {merge, func(f *fake, _ *conn.Server) { f.failAll(panics) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
				test.before(f, s)
				fill(f, s, time.Millisecond)
				test.during(f, s)
				results := start(background, s, "a", "b", "c")
				_, begun := begin(s, "d")
				inboxes := flush(s, timeout, batched("e"), batched("f"))
				began := time.Now()
				for range cap(results) {
					if r := <-results; r.err == nil || outcome(r.err) == conn.Refused || !strings.Contains(r.err.Error(), "panicked: no") {
						t.Error(r)
					}
				}
				wantTime(t, "that was told", began, time.Millisecond)
				for _, in := range inboxes {
					if r := <-in; r.err == nil || conn.OutcomeOf(r.err) != conn.Unknown {
						t.Error(r)
					}
				}
				if synctest.Wait(); len(begun[0].errs) != 1 || begun[0].errs[0] == nil {
					t.Error(begun[0])
				}
				f.panics, f.always = false, nil
				wantValues(t, start(background, s, "a", "b", "c"))
				time.Sleep(time.Minute)
			})
		})
	}
}

// inPipelines runs a test under a context that somebody could cancel, without which
// calls may not need company.
func inPipelines(t *testing.T, test func(t *testing.T, ctx context.Context, f *fake, s *conn.Server)) {
	t.Helper()
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		test(t, ctx, f, s)
		cancel()
		time.Sleep(time.Minute)
	})
}

// What was answered is not kept by what waited after it.
func TestAnsweredCommandsAreForgotten(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		merge(f, s)
		for _, d := range []time.Duration{4 * time.Millisecond, time.Second} {
			f.fail(late(d))
			start(background, s, fmt.Sprint("first", d))
		}
		served := new([1 << 10]byte)
		kept := weak.Make(served)
		f.fail(late(2*time.Millisecond), late(time.Second))
		first := start(context.WithValue(ctx, t, served), s, "a", "b", "c")
		served = nil
		time.Sleep(5 * time.Millisecond) // the first are under way
		start(ctx, s, "d")               // waits where they did
		wantValues(t, first)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		runtime.GC()
		if kept.Value() != nil {
			t.Error("the context of a command that was answered is still there")
		}
	})
}

func TestCommandsThatComeTogetherGoTogether(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		merge(f, s)
		fill(f, s, 4*time.Millisecond)
		began := time.Now()
		results := start(ctx, s, numbered(100)...)
		wantValues(t, results)
		wantTime(t, "all were there", began, 4*time.Millisecond)
		scripts := f.scripts()[alone:]
		if len(scripts) != 2 || scripts[0].words[2] != 64 || scripts[1].words[2] != 36 {
			t.Fatalf("%d commands", len(scripts))
		}
		want := []any{"evalsha", scripts[1].words[1], 36}
		for i := range 36 {
			want = append(want, fmt.Sprint("k", 64+i))
		}
		for i := range 36 {
			want = append(want, fmt.Sprint("own k", 64+i))
		}
		if !slices.Equal(scripts[1].words, want) {
			t.Errorf("%v", scripts[1].words)
		}
	})
}

// Commands with other scripts, or more for the merged script, are batches of their own, and so are those
// that do not merge. What the merged script does not take makes no difference.
func TestBatchesAreOfOneKind(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		merge(f, s)
		fill(f, s, 4*time.Millisecond)
		longer := batched("a")
		longer.Words = append(longer.Words, "more")
		alike := batched("b")
		alike.Words = append(alike.Words, "more")
		longer.MergedArgs = 2
		other := &conn.Command{Script: merging("another script"), Keys: 1, Words: batched("c").Words, MergedArgs: 1}
		by := &conn.Command{Script: mergingScript, Keys: 1, Words: batched("f").Words}
		for _, c := range []*conn.Command{batched("d"), longer, alike, other, other, by, by, batched("e")} {
			go func() {
				if _, err := s.Do(ctx, c, timeout); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		var keys []any
		for _, c := range f.scripts()[alone:] {
			keys = append(keys, c.words[3:3+c.words[2].(int)]...)
		}
		if n := len(f.scripts()) - alone; n != 5 || !slices.Equal(keys, []any{"d", "b", "e", "a", "c", "c", "f", "f"}) {
			t.Errorf("%d commands of %v", n, keys)
		}
	})
}

// A command for several of each key is merged with those of as many. Each has its reply, also that it was not done.
func TestCommandsOfSeveralCalls(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		several := func(keys ...any) *conn.Command {
			return &conn.Command{Script: mergingScript.Merged, Keys: int16(len(keys)), Words: append(keys, "own"), MergedArgs: 1}
		}
		do := func(cs ...*conn.Command) (values []any) {
			fill(f, s, 4*time.Millisecond)
			f.fail(reply([]any{[]any{"A", "B"}, nil}))
			done := make([]chan any, len(cs))
			for i, c := range cs {
				done[i] = make(chan any, 1)
				go func() {
					r, err := s.Do(ctx, c, timeout)
					if err != nil {
						t.Error(err)
					}
					done[i] <- r.Value
				}()
				synctest.Wait()
			}
			for _, d := range done {
				values = append(values, <-d)
			}
			time.Sleep(time.Second)
			return values
		}
		merge(f, s)
		before := len(f.scripts()) + alone
		got := do(several("a", "b"), several("c", "d"), several("e", "f", "g"))
		if fmt.Sprint(got[:2]) != "[[A B] <nil>]" {
			t.Errorf("replies: %v", got)
		}
		if sent := f.scripts()[before:]; len(sent) != 2 || !slices.Equal(sent[0].words[2:], []any{4, "a", "b", "c", "d", "own", "own"}) {
			t.Errorf("sent: %v", sent)
		}
		for _, undone := range []fault{reply(nil), lost(redis.Nil)} {
			f.fail(undone)
			if r, err := s.Do(ctx, several("a", "b"), timeout); err != nil || r.Value != nil {
				t.Errorf("%v, %v", r.Value, err)
			}
		}
	})
}

// What a merged script has left to do goes by itself, and has an outcome of its own.
func TestCallThatIsLeftGoesByItself(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		merge(f, s)
		fill(f, s, 4*time.Millisecond)
		results := start(ctx, s, "a", "bad", "b")
		for range 3 {
			switch r := <-results; {
			case r.key == "bad":
				wantFailure(t, r.err, conn.Refused, nil)
				if !redis.HasErrorPrefix(r.err, "WRONGTYPE") {
					t.Error(r.err)
				}
			case r.value != r.key || r.err != nil:
				t.Errorf("%s: %v, %v", r.key, r.value, r.err)
			}
		}
		if n := len(f.scripts()) - alone; n != 2 {
			t.Errorf("%d commands", n)
		}
	})
}

// A merged script that has done nothing has left all.
func TestCallsThatAreLeftGoByThemselves(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		merge(f, s)
		fill(f, s, 4*time.Millisecond)
		f.fail(reply([]any{nil, nil}))
		wantValues(t, start(ctx, s, "a", "b"))
		scripts := f.scripts()[alone:]
		if len(scripts) != 3 || scripts[1].words[3] != "a" || scripts[2].words[3] != "b" || scripts[1].words[1] == scripts[0].words[1] {
			t.Errorf("%v", scripts)
		}
	})
}

// Redis is given the text of a merged script that it does not have.
func TestMergedScriptIsLoaded(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		merge(f, s)
		fill(f, s, 4*time.Millisecond)
		f.fail(lost(refusal("NOSCRIPT no script")))
		wantValues(t, start(ctx, s, "a", "b"))
		if scripts := f.scripts()[alone:]; len(scripts) != 2 || !slices.Equal(scripts[1].words[:3], []any{"eval", "merged a script", 2}) {
			t.Errorf("%v", scripts)
		}
	})
}

// A key that the user may not have, or that is elsewhere, concerns one of the calls.
func TestBatchThatIsRefusedIsSplit(t *testing.T) {
	for _, err := range []string{"NOPERM no permission", "CROSSSLOT keys", "MOVED 1 127.0.0.1:2"} {
		inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
			merge(f, s)
			fill(f, s, 4*time.Millisecond)
			f.fail(lost(refusal(err)), lost(refusal(err)), succeed, lost(refusal(err)))
			results := start(ctx, s, "a", "b")
			for range 2 {
				if r := <-results; r.key == "a" {
					wantFailure(t, r.err, conn.Refused, refusal(err))
				} else if r.err != nil || r.value != "b" {
					t.Error(r)
				}
			}
			if n := len(f.scripts()) - alone; (n == 4) != strings.HasPrefix(err, "MOVED") {
				t.Errorf("%s: %d commands", err, n)
			}
		})
	}
}

// What is no list is the reply to each call of a batch.
func TestBatchHasOneReplyForAll(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		merge(f, s)
		fill(f, s, 4*time.Millisecond)
		f.fail(reply("text"))
		results := start(ctx, s, "a", "b")
		for range 2 {
			if r := <-results; r.err != nil || r.value != "text" {
				t.Errorf("%v, %v", r.value, r.err)
			}
		}
	})
}

func TestBatchIsRefusedAsAWhole(t *testing.T) {
	for name, f1 := range map[string]fault{
		"error": lost(refusal("READONLY")),
		"fewer": reply([]any{"a"}),
	} {
		inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
			merge(f, s)
			fill(f, s, 4*time.Millisecond)
			f.fail(f1)
			results := start(ctx, s, "a", "b")
			for range 2 {
				if r := <-results; r.err == nil || (outcome(r.err) == conn.Refused) != (name == "error") {
					t.Errorf("%s: %v, %v", name, r.value, r.err)
				}
			}
			if n := len(f.scripts()) - alone; n != 1 {
				t.Errorf("%d commands", n)
			}
		})
	}
}

// A command without company has nothing to be split.
func TestSingleCommandIsRefusedOnce(t *testing.T) {
	for _, err := range []error{refusal("NOPERM"), refusal("CROSSSLOT"), redis.ErrClosed} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			f.fail(lost(err))
			if got := <-flush(s, timeout, batched("a"))[0]; !errors.Is(got.err, err) || len(f.scripts()) != 1 {
				t.Errorf("%v, sent %d times", got, len(f.scripts()))
			}
		})
	}
}

// Until the Server knows that one server has all keys, a batch might go to the wrong one.
func TestCallsAreNotMergedUnlessOneServerHasAllKeys(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		f.divided = true
		merge(f, s)
		for range 3 {
			time.Sleep(11 * time.Second)
			fill(f, s, 100*time.Microsecond) // it is as near as before
			time.Sleep(time.Millisecond)
			before := len(f.scripts())
			for range 2 {
				fill(f, s, 4*time.Millisecond)
				wantValues(t, start(ctx, s, "a", "b"))
			}
			if n := len(f.scripts()) - before; n != 2*(alone+2) {
				t.Errorf("%d commands", n)
			}
		}
		synctest.Wait()
		if f.probes != 4*16 {
			t.Errorf("looked %d times", f.probes)
		}
	})
}

func TestCommandThatWaitsForCompanyCanBeGivenUp(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		fill(f, s, 4*time.Millisecond)
		short, cancel := context.WithCancel(ctx)
		c, compensated := counted(new(conn.Resends))
		done := make(chan error, 1)
		go func() {
			_, err := s.Do(short, c, timeout)
			done <- err
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		wantFailure(t, <-done, conn.NotSent, context.Canceled)
		time.Sleep(time.Minute)
		if n := len(f.scripts()); n != alone || compensated.Load() != 0 {
			t.Errorf("%d commands, %d compensations", n, compensated.Load())
		}
	})
}

func TestCommandsInAPipelineAreCompensated(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		merge(f, s)
		fill(f, s, 4*time.Millisecond)
		f.fail(late(time.Second))
		short, cancel := context.WithCancel(ctx)
		var compensated [2]atomic.Int32
		for i, key := range []string{"a", "b"} {
			c := batched(key)
			c.Compensator = counter{&compensated[i]}
			go func() { _, _ = s.Do(short, c, timeout) }()
			synctest.Wait()
		}
		time.Sleep(100 * time.Millisecond)
		cancel()
		time.Sleep(time.Minute)
		if a, b := compensated[0].Load(), compensated[1].Load(); a != 1 || b != 1 {
			t.Errorf("%d, %d compensations", a, b)
		}
	})
}

// Requests that hang hold up the others for a moment only.
func TestCommandsThatHangHoldUpNobodyElse(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		fill(f, s, time.Second)
		began := time.Now()
		wantValues(t, start(ctx, s, numbered(600)...))
		wantTime(t, "others were there", began, 5*time.Millisecond)
	})
}

// So do pipelines that hang.
func TestPipelinesThatHangHoldUpNobodyElse(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		fill(f, s, time.Second)
		f.fail(late(time.Second))
		results := start(ctx, s, numbered(600)...)
		time.Sleep(5 * time.Millisecond) // by a third connection have left as many as there is room for
		began := time.Now()
		for range 500 {
			if r := <-results; r.err != nil {
				t.Fatal(r.err)
			}
		}
		wantTime(t, "the others were there", began, 20*time.Millisecond)
	})
}

// A hook of the client's may stop a pipeline and leave its commands without an error.
func TestErrorOfAHookIsTheCause(t *testing.T) {
	inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
		fill(f, s, 4*time.Millisecond)
		f.stop = errors.New("circuit breaker is open")
		results := start(ctx, s, "a", "b")
		for range 2 {
			wantFailure(t, (<-results).err, conn.NotSent, f.stop)
		}
	})
}

// A reply names its command; that of a batch the first one. A reply to another leaves unknown what became of each, and
// each is compensated.
func TestReplyToAnotherCommand(t *testing.T) {
	for name, c := range map[string]struct {
		reply func() any
		want  []any // nil: it is another's
	}{
		"of each":                   {func() any { return []any{"1-a", "2-a"} }, []any{"1", "2"}},
		"of all":                    {func() any { return "1-a" }, []any{"1", "1"}},
		"lists":                     {func() any { return []any{[]any{int64(1), "1-a"}, []any{"-a"}} }, []any{[]any{int64(1), "1"}, []any{""}}},
		"of each, another's":        {func() any { return []any{"1-c", "2-c"} }, nil},
		"of each, the second's":     {func() any { return []any{"1-b", "2-b"} }, nil},
		"of all, another's":         {func() any { return "1-c" }, nil},
		"of all, without a name":    {func() any { return "1" }, nil},
		"lists, another's":          {func() any { return []any{[]any{int64(1), "1-a"}, []any{"-c"}} }, nil},
		"lists, another's at first": {func() any { return []any{[]any{int64(1), "1-c"}, []any{"-a"}} }, nil},
	} {
		inPipelines(t, func(t *testing.T, ctx context.Context, f *fake, s *conn.Server) {
			merge(f, s)
			fill(f, s, 4*time.Millisecond)
			f.fail(reply(c.reply()))
			commands, compensated := []*conn.Command{batched("a"), batched("b")}, new(atomic.Int32)
			for i, b := range commands {
				b.Tag, b.Compensator = []string{"-a", "-b"}[i], counter{compensated}
			}
			s.DoAll(ctx, commands, timeout, func(i int, r conn.Reply, err error) {
				if c.want == nil {
					wantFailure(t, err, conn.Unknown, nil)
				} else if !reflect.DeepEqual(r.Value, c.want[i]) || err != nil {
					t.Errorf("%s: %v, %v", name, r.Value, err)
				}
			})
			if n := compensated.Load(); n != map[bool]int32{true: 2, false: 0}[c.want == nil] {
				t.Errorf("%s: %d compensations", name, n)
			}
		})
	}
}

// So does that of a command that goes alone.
func TestReplyToAnotherLoneCommand(t *testing.T) {
	for text, want := range map[string]any{"1-a": "1", "1-b": nil, "1": nil} {
		bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
			f.failAll(reply(text))
			c, compensated := counted(new(conn.Resends))
			c.Tag = "-a"
			r, err := s.Do(background, c, timeout)
			if want == nil {
				wantFailure(t, err, conn.Unknown, nil)
			}
			if n := compensated.Load(); r.Value != want || (n == 1) != (want == nil) {
				t.Errorf("%s: %v, %d compensations", text, r.Value, n)
			}
			if got := <-flush(s, timeout, c)[0]; got.reply.Value != want || (got.err == nil) != (want != nil) {
				t.Errorf("%s: %v, when it was queued", text, got)
			}
		})
	}
}

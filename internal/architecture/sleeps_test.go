package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sleepers are what sleeps by the real clock in tests, each with its reason. Nothing
// waits for something to happen in this way: that is for redistest.Await.
var sleepers = map[string]string{
	"benchmarks.TestOldLocksAndNewOnesExcludeOneAnother": "how long a lock is used, and how often an old process asks",
	"core.TestOldAndNewProcessesOnOneName":               "likewise",

	"internal/browser.TestLockPage":        "with -update only, for a picture with times as one meets them",
	"internal/conformance.attemptCases":    "the harness runs these cases in bubbles",
	"internal/conformance.backgroundCases": "likewise",
	"core.blocker.block":                   "a client of go-redis that blocks, in a bubble: go-redis calls it",
	"internal/conformance.bodyCases":       "likewise",
	"internal/conformance.handlerCases":    "likewise",
	"internal/conformance.handoverCases":   "likewise",
	"internal/conformance.idempotentCases": "likewise",
	"internal/conformance.keepforCases":    "likewise",
	"internal/conformance.logCases":        "likewise",
	"internal/conformance.permitCases":     "likewise",
	"internal/conformance.severalCases":    "likewise",
	"internal/conformance.storedCases":     "likewise",
	"internal/conformance.overlap.slow":    "a handler in such cases",
	"internal/conformance.slowRelease":     "an Observer in such cases",
	"internal/faults.nemesis.pause":        "how long a fault lasts",
	"internal/redisson.work":               "how long a lock is used",
	"internal/redistest.WatchStalls":       "measures how much longer a sleep takes than it should",
}

func TestOnlyBubblesSleep(t *testing.T) {
	folders, err := parseTests(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	superfluous, inside := maps.Clone(sleepers), 0
	for folder, files := range folders {
		for _, s := range findSleeps(files) {
			name := folder + "." + s.function
			switch _, listed := sleepers[name]; {
			case s.inBubble:
				inside++
			case listed:
				delete(superfluous, name)
			default:
				t.Errorf("%s: %s sleeps, and nothing shows that it is in a bubble of synctest only: "+
					"wait for the condition (redistest.Await), or use a bubble", s.at, name)
			}
		}
	}
	for name := range superfluous {
		t.Errorf("%s does not sleep by the real clock: take it out of the list", name)
	}
	if inside == 0 {
		t.Error("no test sleeps in a bubble: the files were not found")
	}
}

// Without this the test above could pass because it sees nothing.
func TestSleepsAreFound(t *testing.T) {
	files := files{set: token.NewFileSet()}
	file, err := parser.ParseFile(files.set, "p_test.go", `package p
import ("testing"; "testing/synctest"; "time")

func bubble(t *testing.T, f func()) { synctest.Test(t, func(t *testing.T) { f() }) }
func twice(t *testing.T, f func()) { bubble(t, f); f() }
type server struct{ do func() }

func inBubbles() { time.Sleep(1) }
func deepInBubbles() { inBubbles() }
func (server) inBubbles() { time.Sleep(1) }
func named() { time.Sleep(1) }
func (server) passed() { time.Sleep(1) }
func (server) ServeHTTP() { time.Sleep(1) }
var cases = []struct{ name string; run, do func() }{
	{"a", named, inBoth},
	{run: func() { time.Sleep(1) }, do: func() { time.Sleep(1) }},
}
func TestInBubbles(t *testing.T) {
	bubble(t, func() { deepInBubbles(); inBoth(); server{}.inBubbles() })
	synctest.Test(t, func(t *testing.T) { go func() { time.Sleep(1) }() })
	bubble(t, server{}.passed)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { bubble(t, c.run) })
		c.do()
	}
	for name, test := range map[string]func(){"b": func() { time.Sleep(1) }} {
		t.Run(name, func(t *testing.T) { bubble(t, func() { test() }) })
	}
}

func inBoth() { <-time.After(1) }
func byValue() { wait := time.Sleep; wait(1) }
func half() { time.Sleep(1) }
type handler struct{}
func (handler) ServeHTTP() { time.Sleep(1) }
func TestOutside(t *testing.T) {
	inBoth()
	time.Sleep(1)
	byValue()
	twice(t, half)
	_ = handler{}
	select { case <-time.After(1): }
}
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	files.list = append(files.list, file)
	var got [2][]string
	for _, s := range findSleeps(files) {
		i := map[bool]int{true: 1}[s.inBubble]
		got[i] = append(got[i], s.function)
	}
	want := [2][]string{
		{"cases", "inBoth", "byValue", "half", "handler.ServeHTTP", "TestOutside"},
		{"inBubbles", "server.inBubbles", "named", "server.passed", "server.ServeHTTP", "cases", "TestInBubbles", "TestInBubbles"},
	}
	for i, where := range []string{"outside of bubbles", "in bubbles"} {
		slices.Sort(got[i])
		slices.Sort(want[i])
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s sleep %q; want %q", where, got[i], want[i])
		}
	}
}

// parseTests returns, by folder, the files of packages with tests, those of nested modules,
// too. What is in internal is for tests as a whole.
func parseTests(root string) (map[string]files, error) {
	out := map[string]files{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && file != root && (name[0] == '.' || name[0] == '_' || name == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(folder, "internal/") {
			return nil
		}
		f := out[folder]
		if f.set == nil {
			f.set = token.NewFileSet()
		}
		parsed, err := parser.ParseFile(f.set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f.list = append(f.list, parsed)
		out[folder] = f
		return nil
	})
	return out, err
}

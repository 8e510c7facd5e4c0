package overload

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
)

var (
	results = flag.String("overload.results", "", "measure all rows, and write the table to this file")
	only    = flag.String("overload.rows", "", "measure the rows whose names contain this, and print them")
	one     = flag.String("overload.one", "", "of the process that measures one: library/row")
)

// TestOverload measures, if it is asked to.
func TestOverload(t *testing.T) {
	if *results == "" && *only == "" {
		t.Skip("with -overload.results or -overload.rows: it takes minutes")
	}
	var lines []*string // in the order of the rows, whatever ends first
	t.Run("rows", func(t *testing.T) {
		for _, r := range rows {
			for _, l := range libraries {
				if !l.fits(r) || !strings.Contains(r.name, *only) {
					continue
				}
				to := new(string)
				lines = append(lines, to)
				t.Run(r.name+"/"+l.name, func(t *testing.T) {
					t.Parallel()
					*to = inItsOwnProcess(t, l, r)
				})
			}
		}
	})
	if *results == "" || t.Failed() {
		return
	}
	page := heading
	for _, l := range lines {
		page += *l
	}
	if err := os.WriteFile(*results, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A few seconds of each library, so that the program works when somebody wants to measure.
func TestEachLibraryInABriefSpike(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) { inItsOwnProcess(t, l, briefRow) })
	}
}

// inItsOwnProcess returns a line of the table. go-redis keeps timers for later use in a pool of the whole process, and those
// of one bubble must not be used in another.
func inItsOwnProcess(t *testing.T, l library, r row) (line string) {
	out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestOneRow$", "-overload.one", l.name+"/"+r.name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "| ") {
			t.Log(strings.TrimSpace(line))
			return line
		}
	}
	t.Fatalf("no line of the table:\n%s", out)
	return ""
}

// TestOneRow is such a process. It ends at once: all that is in flight would have to be waited for.
func TestOneRow(t *testing.T) {
	if *one == "" {
		t.Skip("of a process of TestOverload")
	}
	for _, r := range append(rows, briefRow) {
		for _, l := range libraries {
			if l.name+"/"+r.name != *one {
				continue
			}
			r = r.complete()
			synctest.Test(t, func(t *testing.T) {
				m := measure(t, l, r)
				if wrong := m.wrong(l); r.brief && wrong != "" {
					fmt.Println(wrong)
					os.Exit(1)
				}
				fmt.Print(line(r, l, m))
				os.Exit(0)
			})
		}
	}
}

// wrong says what cannot be right after a brief spike.
func (m result) wrong(l library) string {
	switch {
	case m.warm.granted < 0.93*m.warm.offered || m.warm.offered < 100:
		return fmt.Sprintf("%.0f of %.0f calls a second were granted before the spike", m.warm.granted, m.warm.offered)
	case m.spike.offered < 3*m.warm.offered:
		return fmt.Sprintf("%.0f calls a second in the spike, %.0f before it", m.spike.offered, m.warm.offered)
	case l.name == latchkeyLibrary.name && (m.recovery < 0 || m.recovery > 3 || m.lost > 0):
		return fmt.Sprintf("it recovered after %.0f s (-1: never) and lost %d locks", m.recovery, m.lost)
	}
	return ""
}

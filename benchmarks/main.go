package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func main() {
	runChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends it at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// run measures, prints the table to out and progress to log.
func run(ctx context.Context, args []string, out, log io.Writer) (err error) {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(log)
	rows := flags.String("rows", "", `rows to measure, comma-separated: "hot-64", or "hot" for all that begin so (default: all)`)
	libs := flags.String("libs", "", "libraries to measure, comma-separated (default: all)")
	rounds := flags.Int("rounds", 5, "rounds; medians are taken over them")
	roundTime := flags.Duration("round-time", 2*time.Second, "how long a library is measured in a round")
	holdTime := flags.Duration("hold-time", 15*time.Second, "how long the rows of held locks are measured")
	quick := flags.Bool("quick", false, "one short round: a look, no measurement")
	dir := flags.String("out", "", `folder for table, JSON and charts (default: "results" for a full run, else none)`)
	from := flags.String("from", "", "measure nothing: write the pages of this results.json anew, into its folder")
	cpuProfile := flags.String("cpuprofile", "", "write a CPU profile of this process to a file")
	memProfile := flags.String("memprofile", "", "write a profile of all allocations of this process to a file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *from != "" {
		r, err := load(*from)
		if err != nil {
			return err
		}
		return r.save(filepath.Dir(*from))
	}
	b := &bench{
		rounds: *rounds, roundTime: *roundTime, holdTime: *holdTime, divide: 1, quick: *quick, libraries: split(*libs), log: log,
	}
	if b.quick {
		b.rounds, b.roundTime, b.holdTime = 1, 300*time.Millisecond, 3*time.Second
	}
	if b.rounds < 1 || b.roundTime <= 0 || b.holdTime <= 0 {
		return fmt.Errorf("-rounds, -round-time and -hold-time must be positive")
	}
	if *dir == "" && *rows == "" && *libs == "" && !b.quick {
		*dir = "results"
	}
	for _, name := range b.libraries {
		if _, err := findLibrary(name); err != nil {
			return err
		}
	}
	chosen, err := selectRows(split(*rows))
	if err != nil {
		return err
	}
	stopProfiles, err := startProfiles(*cpuProfile, *memProfile)
	if err != nil {
		return err
	}
	r, err := b.measure(ctx, chosen)
	if err := firstError(err, stopProfiles()); err != nil {
		return err
	}
	fmt.Fprint(out, r.table())
	if *dir != "" {
		if err := r.save(*dir); err != nil {
			return err
		}
	}
	return r.exclusion()
}

// measure runs the rows.
func (b *bench) measure(ctx context.Context, rows []row) (r report, err error) {
	server, err := redistest.Launch("")
	if err != nil {
		return r, err
	}
	o := observe(server.Addr())
	about, err := conditions(ctx, o, b)
	if err := firstError(err, o.close(), server.Close()); err != nil {
		return r, err
	}
	start := time.Now()
	var all []measured
	for _, row := range rows {
		if why := row.leftOut(b.quick); why != "" {
			fmt.Fprintf(b.log, "%-16s left out: %s\n", row.name, why)
			continue
		}
		m, err := b.run(ctx, row)
		if err != nil {
			return r, err
		}
		if len(m.order) > 0 {
			all = append(all, m)
		}
	}
	fmt.Fprintf(b.log, "measured for %v\n", time.Since(start).Round(time.Second))
	return newReport(about, all), nil
}

// leftOut says why a row is not measured, if so.
func (r row) leftOut(quick bool) (why string) {
	if quick && r.minutes {
		return "it takes minutes"
	}
	if _, err := exec.LookPath(r.needs); r.needs != "" && err != nil {
		return "it needs " + r.needs
	}
	return ""
}

// exclusion fails when two were inside one lock at once: what was measured is
// worth nothing then.
func (r report) exclusion() error {
	var broken []string
	for _, m := range r.rows {
		if n := m.violations(); n > 0 {
			broken = append(broken, fmt.Sprintf("%s: %v times", m.name, n))
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("two held the same lock at once: %s", strings.Join(broken, ", "))
	}
	return nil
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// Jobs shows what a lock costs asynq tasks that meet at one key, and what it costs
// the others: without a lock, with a middleware over redislock as one writes it by
// hand, and with asynqlock.
//
//	go run ./jobs                       # the tables of results/jobs.md, about 30 minutes
//	go run ./jobs -quick                # a look in a minute
//	go run ./jobs -rows default -scenes hot -workers 10
//	go run ./jobs -triggers             # one run for many tasks, in half a minute
//
// It needs redis-server on the path and starts one of its own for each run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "jobs:", err)
		os.Exit(1)
	}
}

// plan is what to measure.
type plan struct {
	rows    []row
	scenes  []scene
	workers []int
	limit   time.Duration // a run that has not finished by then is cut
	quick   bool
}

// scale is by how much there is less of everything.
func (p plan) scale() int {
	if p.quick {
		return 5
	}
	return 1
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("jobs", flag.ContinueOnError)
	flags.SetOutput(log)
	named := flags.String("rows", "", "rows to measure, comma-separated (default: all)")
	scened := flags.String("scenes", "", "scenes to measure, comma-separated: "+strings.Join(sceneNames(), ", ")+" (default: all)")
	workers := flags.String("workers", "10,100", "numbers of workers")
	limit := flags.Duration("limit", 10*time.Second, "when a run is cut")
	triggers := flags.Bool("triggers", false, "measure tasks that all ask for the same work, and nothing else")
	quick := flags.Bool("quick", false, "fewer tasks and short runs: a look, no measurement")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := plan{limit: *limit, quick: *quick}
	if p.quick {
		p.limit = min(p.limit, 2*time.Second)
	}
	var err error
	if p.rows, err = choose(rows, *named, func(r row) string { return r.name }); err != nil {
		return err
	}
	if p.scenes, err = choose(scenes, *scened, func(s scene) string { return s.name }); err != nil {
		return err
	}
	for _, text := range strings.Split(*workers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-workers: %q is no number of workers", text)
		}
		p.workers = append(p.workers, n)
	}
	if *triggers {
		for _, n := range p.workers {
			if err := measureTriggers(ctx, out, 200/p.scale(), n); err != nil {
				return err
			}
		}
		return nil
	}
	for _, s := range p.scenes {
		for _, n := range p.workers {
			fmt.Fprintf(out, "\n%s; %d workers\n\n%s", s.title, n, s.header())
			for _, r := range p.rows {
				f, err := measure(ctx, p, s, r, n)
				if err != nil {
					return fmt.Errorf("%s, %d workers, %s: %w", s.name, n, r.name, err)
				}
				fmt.Fprint(out, s.line(r, f))
			}
		}
	}
	return nil
}

// choose returns those of all that are named in a comma-separated list.
func choose[T any](all []T, list string, name func(T) string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	var chosen []T
	for _, want := range strings.Split(list, ",") {
		i := slices.IndexFunc(all, func(t T) bool { return name(t) == want })
		if i < 0 {
			var names []string
			for _, t := range all {
				names = append(names, name(t))
			}
			return nil, errors.New("there is no " + strconv.Quote(want) + "; there are " + strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

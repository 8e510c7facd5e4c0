package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// showOne prints the levels of one order, and of a part that was called alone.
func showOne(order, part *caller, refusal error) {
	fmt.Printf("1 caller, %s deep, under one key:\n\n", count(*depth, "level"))
	fmt.Printf("  %-34s %6s %10s\n", "", "holds", "to enter")
	row := func(indent int, l level, what string) {
		name := strings.Repeat(" ", min(2*indent, 18)) + l.name
		fmt.Printf("  %-34s %6d %10s  %s\n", name, l.holds, short(l.in.Sub(l.asked)), what)
	}
	for i, l := range order.levels {
		what := "re-entry"
		if i == 0 {
			what = "acquisition"
		}
		row(i, l, what)
	}
	row(0, part.levels[0], "acquisition: it was called alone")
	fmt.Printf("\n  With core.Detach(ctx) and core.NoWait() the second level is refused: %v\n", refusal)
}

// listed bounds the rows of a table.
const listed = 30

// showMany prints who was inside when, in that order.
func showMany(began time.Time, all []*caller) {
	all = slices.SortedFunc(slices.Values(all), func(a, b *caller) int { return a.levels[0].in.Compare(b.levels[0].in) })
	end := all[len(all)-1].levels[0].out.Sub(began)

	fmt.Printf("\n%s at once, %s each, over %d servers; · waits, █ is inside:\n\n",
		count(len(all), "caller"), count(*depth, "level"), servers)
	fmt.Printf("  %6s %6s %10s %10s  %s\n", "caller", "server", "from", "to", "holds")
	for i, c := range all {
		if len(all) > listed && i == listed/2 {
			fmt.Printf("  … and %d more …\n", len(all)-listed)
		}
		if len(all) > listed && i >= listed/2 && i < len(all)-listed/2 {
			continue
		}
		outermost := c.levels[0]
		in, out := outermost.in.Sub(began), outermost.out.Sub(began)
		fmt.Printf("  %6d %6d %10s %10s  %-10s %s\n", c.number, c.server, short(in), short(out), holds(c), bar(in, out, end))
	}
}

// holds is the count at each level, such as "1 2 3"; of many levels "1 … 9".
func holds(c *caller) string {
	var counts []string
	for _, l := range c.levels {
		counts = append(counts, fmt.Sprint(l.holds))
	}
	if len(counts) > 5 {
		counts = []string{counts[0], "…", counts[len(counts)-1]}
	}
	return strings.Join(counts, " ")
}

// bar shows a wait from 0 and the time inside, on a scale that goes to end.
func bar(in, out, end time.Duration) string {
	const width = 40
	from, to := int(width*in/end), int(width*out/end)
	return strings.Repeat("·", from) + strings.Repeat("█", max(1, to-from))
}

// showCosts prints what it costs to enter and to leave. Both are a round trip to Redis,
// for a re-entry as for the acquisition; only the acquisition may have to wait.
func showCosts(one, many []*caller) {
	fmt.Printf("\nMedians:%43s %10s\n", "to enter", "to leave")
	row := func(what string, of []*caller, from, to int) {
		var enter, leave []time.Duration
		for _, c := range of {
			for _, l := range c.levels[min(from, len(c.levels)):min(to, len(c.levels))] {
				enter = append(enter, l.in.Sub(l.asked))
				leave = append(leave, l.returned.Sub(l.out))
			}
		}
		if len(enter) > 0 {
			fmt.Printf("  %-38s %10s %10s\n", what, short(median(enter)), short(median(leave)))
		}
	}
	row("acquisition, nobody else there", one, 0, 1)
	row("re-entry, nobody else there", one, 1, *depth)
	row(fmt.Sprintf("acquisition, %d at once, with its wait", len(many)), many, 0, 1)
	row("re-entry, while others wait", many, 1, *depth)
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// short is a duration in ms.
func short(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// table writes what was measured for people: Markdown, readable as it is.
func (r report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Conditions)
	r.answers(&b)
	b.WriteString("## The rows\n\nMedians over the rounds; ratios are medians of the ratios in each round; ± is half of the\n" +
		"distance between the best and the worst round, in percent of the median.\n")
	for _, m := range r.rows {
		b.WriteByte('\n')
		m.write(&b)
	}
	return b.String()
}

func (m measured) write(b *strings.Builder) {
	fmt.Fprintf(b, "### %s\n\n`-rows %s`\n\n| |", m.title, m.name)
	lead := m.columns[0]
	columns := append([]figure(nil), m.columns...)
	for _, extra := range []figure{errorCount, violationCount} {
		if m.any(extra) {
			columns = append(columns, extra)
		}
	}
	rule := "\n|---|"
	for i, c := range columns {
		fmt.Fprintf(b, " %s |", headings[c])
		rule += "--:|"
		if i == 0 {
			b.WriteString(" ± |")
			rule += "--:|"
			if m.base != "" {
				fmt.Fprintf(b, " × %s |", m.base)
				rule += "--:|"
			}
		}
	}
	b.WriteString(rule + "\n")
	for _, library := range m.order {
		fmt.Fprintf(b, "| %s |", library)
		for i, c := range columns {
			fmt.Fprintf(b, " %s |", show(m.median(library, c)))
			if i == 0 {
				fmt.Fprintf(b, " %s |", m.spread(library, lead))
				if m.base != "" {
					fmt.Fprintf(b, " %s |", show(m.ratio(library, m.base, lead)))
				}
			}
		}
		b.WriteByte('\n')
	}
	for _, library := range m.order {
		if errs := m.failed[library]; errs != nil {
			fmt.Fprintf(b, "\n%s: %d of %s failed and count for nothing: %v\n", library, len(errs), plural(len(m.rounds[library]), "round"), errs[0])
		}
	}
}

// any says whether some round of some library has more than 0 of it.
func (m measured) any(what figure) bool {
	for _, library := range m.order {
		for _, v := range m.of(library, what) {
			if v > 0 {
				return true
			}
		}
	}
	return false
}

// spread says how far the rounds lie apart.
func (m measured) spread(library string, what figure) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range m.of(library, what) {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	middle := m.median(library, what)
	if len(m.rounds[library]) < 2 || !(middle > 0) {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 50*(high-low)/middle)
}

// line is one round in the log.
func (f figures) line(columns []figure) string {
	var parts []string
	for _, c := range columns {
		if v, ok := f[c]; ok {
			parts = append(parts, show(v)+" "+headings[c])
		}
	}
	for _, c := range []figure{errorCount, violationCount} {
		if f[c] > 0 {
			parts = append(parts, strings.ToUpper(show(f[c])+" "+headings[c]))
		}
	}
	return strings.Join(parts, ", ")
}

// show writes three digits, and whole numbers from 100 on.
func show(x float64) string {
	switch {
	case math.IsNaN(x):
		return "–"
	case math.Abs(x) >= 100 || x == math.Trunc(x):
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

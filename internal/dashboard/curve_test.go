package dashboard

import (
	"math"
	"regexp"
	"strings"
	"testing"
)

// curve is what a panel shows of a series. What is not a number is not shown.
type curve struct {
	legend string
	points int
	high   float64 // the greatest value; 0 without points
	last   float64 // may be NaN
}

func newCurve(legendFormat string, s series) curve {
	c := curve{legend: legend(legendFormat, s.Metric), last: math.NaN()}
	for _, v := range s.Values {
		c.last = float64(v)
		if !math.IsNaN(c.last) && !math.IsInf(c.last, 0) {
			c.points++
			c.high = max(c.high, c.last)
		}
	}
	return c
}

var placeholder = regexp.MustCompile(`\{\{ *(\w+) *\}\}`)

// legend is what Grafana writes beside the curve.
func legend(format string, labels map[string]string) string {
	return strings.TrimSpace(placeholder.ReplaceAllStringFunc(format, func(found string) string {
		return labels[placeholder.FindStringSubmatch(found)[1]]
	}))
}

func TestCurve(t *testing.T) {
	nan := sample(math.NaN())
	for what, test := range map[string]struct {
		values []sample
		want   curve
	}{
		"moves":        {[]sample{0, 3, nan, 1}, curve{points: 3, high: 3, last: 1}},
		"stays 0":      {[]sample{0, 0}, curve{points: 2}},
		"not a number": {[]sample{nan, sample(math.Inf(1))}, curve{last: math.Inf(1)}},
	} {
		if got := newCurve("", series{Values: test.values}); got != test.want {
			t.Errorf("%s: %+v, want %+v", what, got, test.want)
		}
	}
	if last := newCurve("", series{}).last; !math.IsNaN(last) {
		t.Errorf("the last value of nothing is %v", last)
	}
}

func TestLegend(t *testing.T) {
	labels := map[string]string{"status": "409", "reason": "no_wait"}
	for format, want := range map[string]string{
		"{{status}} {{ reason }}": "409 no_wait",
		"{{gone}} {{reason}}":     "no_wait",
		"median":                  "median",
		"":                        "",
	} {
		if got := legend(format, labels); got != want {
			t.Errorf("%q is %q, want %q", format, got, want)
		}
	}
}

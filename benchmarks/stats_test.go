package main

import (
	"math"
	"testing"
	"time"
)

func TestJain(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		want   float64
	}{
		{[]int64{5, 5, 5, 5}, 1},
		{[]int64{8, 0, 0, 0}, 0.25},
		{[]int64{3, 1}, 0.8},
		{[]int64{0, 0}, 0},
		{nil, 0},
	} {
		if got := jain(c.counts); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("jain(%v) = %v, want %v", c.counts, got, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		values []time.Duration
		p      float64
		want   time.Duration
	}{
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 99.5, 100}, {hundred, 100, 100}, {hundred, 0, 1},
		{[]time.Duration{7}, 50, 7}, {[]time.Duration{1, 9}, 50, 1}, {[]time.Duration{1, 9}, 51, 9}, {nil, 50, 0},
	} {
		if got := percentile(c.values, c.p); got != c.want {
			t.Errorf("percentile %v of %d values = %v, want %v", c.p, len(c.values), got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{nan, 3}, 3}, {[]float64{nan}, nan}, {nil, nan},
	} {
		if got := median(c.values); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestSummarizeTellsWhoWasNeverServed(t *testing.T) {
	f := summarize([]tally{
		{Cycles: 3, Waits: []time.Duration{3e6, 1e6, 2e6}},
		{Cycles: 3, Waits: []time.Duration{1e6, 1e6, 1e6}},
		{Waits: []time.Duration{9e6}, Errors: 2, Error: "expected by the test"},
	}, 2*time.Second)
	wanted := figures{
		cyclesPerSecond: 3, fairness: 36.0 / 54, neverServed: 1, waitP50: 1, waitP99: 9, waitMax: 9, errorCount: 2,
	}
	for what, want := range wanted {
		if math.Abs(f[what]-want) > 1e-9 {
			t.Errorf("%s = %v, want %v", what, f[what], want)
		}
	}
}

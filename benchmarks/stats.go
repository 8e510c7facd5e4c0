package main

import (
	"math"
	"slices"
	"time"
)

// jain is Jain's fairness index: 1 when all counts are equal, 1/n when one has
// everything.
func jain(counts []int64) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
		squares += float64(c) * float64(c)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(counts)) * squares)
}

// percentile returns the smallest value that at least p percent are not above.
// The values must be sorted.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(p/100*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// median of an even number of values is the mean of the middle two. NaNs, which
// stand for figures that a round did not have, do not count.
func median(values []float64) float64 {
	s := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(s) == 0 {
		return math.NaN()
	}
	slices.Sort(s)
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package redisson

import (
	"fmt"
	"slices"
	"time"
)

// spread says how long something took, of many times.
func spread(took []time.Duration) string {
	s := slices.Sorted(slices.Values(took))
	return fmt.Sprintf("median %s ms, 95 of 100 within %s ms, longest %s ms, of %d",
		inMs(median(s)), inMs(s[len(s)*95/100]), inMs(s[len(s)-1]), len(s))
}

func median(took []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(took))[len(took)/2]
}

// inMs is a figure in milliseconds, to be read.
func inMs(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// inMillis is the argument of Java for a time.
func inMillis(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

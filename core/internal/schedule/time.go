package schedule

import "time"

// Time is a time on the monotonic clock, in nanoseconds since some time long past: a
// third of the size of a time.Time. Times compare by their value. 0 is no time.
type Time int64

// epoch lies well before any clock that a test may set.
var epoch = time.Now().Add(-64 * 365 * 24 * time.Hour)

// Now returns the present time.
func Now() Time { return Time(time.Since(epoch)) }

// At converts a time. One without a monotonic reading is taken by the clock of this
// machine as it was when the process began.
func At(t time.Time) Time { return Time(t.Sub(epoch)) }

// Add returns the time d after t.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns how long after u t is.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Wall returns the time by the clock of this machine, in so far as that was not set
// since the process began. It has a monotonic reading.
func (t Time) Wall() time.Time { return epoch.Add(time.Duration(t)) }

package core

import "time"

// moment is a time on the monotonic clock: a third of the size of a time.Time, of
// which each lock that is held would need several. 0 is no time.
type moment int64

// firstMoment lies well before any clock that a test may set.
var firstMoment = time.Now().Add(-64 * 365 * 24 * time.Hour)

func momentOf(t time.Time) moment { return moment(t.Sub(firstMoment)) }

func thisMoment() moment { return moment(time.Since(firstMoment)) }

func (m moment) add(d time.Duration) moment { return m + moment(d) }

// time is by the clock of this machine, in so far as that was not set meanwhile.
func (m moment) time() time.Time { return firstMoment.Add(time.Duration(m)) }

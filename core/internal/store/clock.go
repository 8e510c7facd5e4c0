package store

import "time"

// GrantLease is how long a lock lasts that a release has granted, unless it is renewed: it is lost for so long on a
// process that hangs. A shorter one would be lost by those that stand still for a moment, or whose Redis does.
const GrantLease = time.Second

// Clock is what the clock of Redis showed after a request was sent.
type Clock struct {
	Redis time.Duration
	Sent  time.Time
}

// IsKnown is false for the zero Clock: Redis has not told the time.
func (c Clock) IsKnown() bool { return c.Redis != 0 }

// NotBefore is a time at which the clock of Redis showed no more than that: the most cautious one that is known.
func (c Clock) NotBefore(redis time.Duration) time.Time { return c.Sent.Add(redis - c.Redis) }

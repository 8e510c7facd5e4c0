package asynqlock

import "time"

// pace is how quickly the tasks of a busy key follow one another.
type pace struct {
	lastAcquired time.Time     // when this process last had the key, or first wanted it
	lastInterval time.Duration // from the acquisition before the last one to that
	interval     time.Duration // the shorter of the last two: one long holder is no pace
}

func (p *pace) acquired(now time.Time) {
	last := now.Sub(p.lastAcquired)
	p.interval, p.lastInterval, p.lastAcquired = min(last, p.lastInterval), last, now
}

package asynqlock

import "time"

// pace is how quickly the tasks of a busy key follow one another.
type pace struct {
	since time.Time     // this process last had the key, or first wanted it
	took  time.Duration // from the acquisition before the last one to that
	each  time.Duration // the shorter of the last two of these: one long holder is no pace
}

func (p *pace) acquired(now time.Time) {
	took := now.Sub(p.since)
	p.each, p.took, p.since = min(took, p.took), took, now
}

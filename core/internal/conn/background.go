package conn

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// A background queue pauses for so long after a round trip in which nothing was done, doubling, with jitter.
	backgroundPause    = 20 * time.Millisecond
	backgroundPauseMax = 500 * time.Millisecond
)

// background is the queue of a server for commands that are sent until Redis has done them, though nobody waits. One round trip at
// a time is in flight: of twice as many commands after a prompt one, of half as many after a late one, of one command while the
// server is silent. So what they cost is spent as answers come in, as retry budgets are. pipeline.mu guards it.
type background struct {
	state   backgroundState
	waiting []*Queued
	size    int           // so many commands the next round trip has at the most
	pause   time.Duration // the last one; 0: something was done since
	timer   *time.Timer   // ends the pause
}

// backgroundState is what a background queue does.
//
//	idle ◀──▶ inFlight ──▶ pausing, silent ──▶ inFlight, idle
//
// It is stopped from any of them, for good.
type backgroundState uint8

const (
	backgroundIdle     backgroundState = iota // Nothing waits.
	backgroundInFlight                        // A round trip is.
	backgroundPausing                         // Nothing was done in the last one.
	backgroundSilent                          // It had no answer: the pause ends when somebody gets one.
	backgroundStopped
)

// Repeat has a command go in the background queue of its server. It does not block. The recipient of a command that fails has
// it repeated, or gives it up, as when q.Until is over.
func (s *Server) Repeat(q *Queued) { s.pipelineFor(q.Command).repeat(q) }

func (p *pipeline) repeat(q *Queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.background
	if b.state == backgroundStopped {
		return
	}
	if b.waiting = append(b.waiting, q); b.state == backgroundIdle {
		p.beginBackground()
	}
}

// beginBackground begins the next round trip, if something waits. mu is held.
func (p *pipeline) beginBackground() {
	b := &p.background
	if b.state = backgroundIdle; len(b.waiting) > 0 {
		b.state = backgroundInFlight
		p.server.config.Workers.Start(p.sendBackground)
	}
}

func (p *pipeline) sendBackground() {
	b, s, began := &p.background, p.server, time.Now()
	p.mu.Lock()
	n := min(b.size, len(b.waiting))
	qs := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	p.mu.Unlock()
	if n == 0 {
		return // it is stopped
	}
	if _, err := s.awaitTopology(context.Background(), s.config.Timeout); err != nil {
		s.report(qs, began, began, answer{err: err})
		p.endBackground(began, []answer{{err: err}})
		return
	}
	p.sendInTime(qs, func(answers []answer) { p.endBackground(began, answers) })
}

// endBackground takes the answers of a round trip, which its recipients have got, and plans the next one.
func (p *pipeline) endBackground(began time.Time, answers []answer) {
	done := 0
	for _, a := range answers {
		if a.err == nil {
			done++
		}
	}
	p.mu.Lock()
	b := &p.background
	switch {
	case b.state == backgroundStopped:
		p.mu.Unlock()
		return
	case done > 0:
		defer p.mu.Unlock()
		b.pause = 0
		if done == len(answers) && time.Since(began) <= p.window.distance+p.window.late {
			b.size = min(2*b.size, maxPipeline)
		} else {
			b.size = max(1, b.size/2)
		}
		p.beginBackground()
		return
	case slices.ContainsFunc(answers, func(a answer) bool { return isRefusal(a.err) }):
		b.state = backgroundPausing
	default:
		b.state = backgroundSilent
	}
	b.size, b.pause = 1, min(max(2*b.pause, backgroundPause), backgroundPauseMax)
	b.timer = time.AfterFunc(b.pause/2+rand.N(b.pause/2), p.resumeBackground)
	waiting := b.waiting
	b.waiting = nil
	p.mu.Unlock()
	for _, q := range waiting {
		if q.Until.Before(time.Now()) {
			q.To.Receive(Reply{}, ErrNoAnswer)
		} else {
			p.server.Repeat(q) // by another server, if that has the key by now
		}
	}
}

// resumeBackground ends a pause.
func (p *pipeline) resumeBackground() {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.background
	if b.state == backgroundStopped {
		return
	}
	if p.beginBackground(); b.state == backgroundIdle {
		b.pause = 0
	}
}

// serverAnswers ends a pause that was for a server that is silent. mu is held.
func (b *background) serverAnswers() {
	if b.state == backgroundSilent && b.timer.Stop() {
		b.timer.Reset(0)
	}
}

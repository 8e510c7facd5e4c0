package conn

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// A background queue pauses for so long after a flush of which nothing was done, doubling, with jitter.
	backgroundPause    = 20 * time.Millisecond
	backgroundPauseMax = 500 * time.Millisecond
)

// background is the queue of a server for commands that are sent until Redis has done them, though nobody waits. One flush at
// a time is in flight: twice as large after a prompt one, half as large after a slow one, of one command while the
// server is silent. So what they cost is spent as answers come in, as retry budgets are. pipeline.mu guards it.
type background struct {
	waiting   []*Queued
	size      int           // of the next flush
	pause     time.Duration // before it; 0: the last one was answered
	timer     *time.Timer   // ends the pause
	isSilent  bool          // the last flush had no answer: the pause ends when somebody gets one
	isBusy    bool          // a flush is in flight
	isStopped bool
}

// Repeat has a command go in the background queue of its server. It does not block. The recipient of a command that fails has
// it repeated, or gives it up, as when q.Until is over.
func (s *Server) Repeat(q *Queued) { s.pipelineFor(q.Command).repeat(q) }

func (p *pipeline) repeat(q *Queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.background
	if b.isStopped {
		return
	}
	b.waiting = append(b.waiting, q)
	if b.pause == 0 {
		p.beginFlush()
	}
}

// beginFlush begins the next flush, unless one is in flight. mu is held.
func (p *pipeline) beginFlush() {
	if b := &p.background; !b.isBusy && len(b.waiting) > 0 {
		b.isBusy = true
		p.server.config.Workers.Start(p.flush)
	}
}

func (p *pipeline) flush() {
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
		p.flushed(began, []answer{{err: err}})
		return
	}
	p.sendInTime(qs, func(answers []answer) { p.flushed(began, answers) })
}

// flushed takes the answers to a flush, which its recipients have got, and plans the next one.
func (p *pipeline) flushed(began time.Time, answers []answer) {
	done := 0
	for _, a := range answers {
		if a.err == nil {
			done++
		}
	}
	p.mu.Lock()
	b := &p.background
	b.isBusy = false
	if done > 0 {
		defer p.mu.Unlock()
		b.pause = 0
		if done == len(answers) && time.Since(began) <= p.window.distance+p.window.late {
			b.size = min(2*b.size, maxPipeline)
		} else {
			b.size = max(1, b.size/2)
		}
		p.beginFlush()
		return
	}
	b.isSilent = !slices.ContainsFunc(answers, func(a answer) bool { return isRefusal(a.err) })
	b.size, b.pause = 1, min(max(2*b.pause, backgroundPause), backgroundPauseMax)
	b.timer = time.AfterFunc(b.pause/2+rand.N(b.pause/2), p.resume)
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

// resume ends a pause.
func (p *pipeline) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.background
	if b.isSilent = false; len(b.waiting) == 0 {
		b.pause = 0
	}
	p.beginFlush()
}

// serverAnswers ends a pause that was for a server that is silent. mu is held.
func (b *background) serverAnswers() {
	if b.isSilent && b.timer.Stop() {
		b.timer.Reset(0)
	}
}

// stop forgets what is to be repeated, and ends what is told of the load.
func (p *pipeline) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.background.isStopped, p.background.waiting = true, nil
	p.meter.isStopped = true
}

// Stop ends what is repeated, and what is told of the load.
func (s *Server) Stop() {
	s.isStopped.Store(true)
	s.pipelines.Range(func(_, p any) bool {
		for _, p := range []*pipeline{p.(*pipeline), p.(*pipeline).replicated} {
			p.stop()
		}
		return true
	})
}

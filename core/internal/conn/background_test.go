//go:build go1.25

package conn_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// patient has a command repeated until it is done.
type patient struct {
	s     *conn.Server
	q     conn.Queued
	fails int
	done  chan struct{}
}

func (p *patient) Receive(_ conn.Reply, err error) {
	switch {
	case err == nil:
		close(p.done)
	case p.q.Until.Before(time.Now()): // it is given up
		p.fails++
		close(p.done)
	default:
		p.fails++
		p.s.Repeat(&p.q)
	}
}

// repeat begins to repeat so many commands, until they are done or so much time is over.
func repeat(s *conn.Server, n int, until time.Duration) (all []*patient) {
	for range n {
		p := &patient{s: s, done: make(chan struct{})}
		p.q = conn.Queued{Command: batched("k"), Timeout: timeout, Until: time.Now().Add(until), To: p}
		all = append(all, p)
		s.Repeat(&p.q)
	}
	return all
}

// Taken out, all that is to be repeated is sent at once, again and again: a flush that is larger than what a server can do in
// time is never confirmed.
func TestBackgroundGrowsWithPromptAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.always = late(time.Millisecond)
		all := repeat(s, 15, time.Hour)
		for _, want := range []int{1, 3, 7, 15} { // 1, 2, 4, 8
			synctest.Wait()
			if n := len(f.scripts()); n > want {
				t.Errorf("%d were sent, want %d", n, want)
			}
			time.Sleep(time.Duration(want+1) / 2 * time.Millisecond) // the fake answers one after the other
		}
		for _, p := range all {
			<-p.done
		}
	})
}

func TestBackgroundAsksASilentServerWithOneCommand(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(hanging)
		all := repeat(s, 100, time.Hour)
		time.Sleep(time.Minute)
		if n := len(f.scripts()); n < 20 || n > 60 { // each for 2 s and a pause of half a second
			t.Errorf("%d were sent in a minute", n)
		}
		f.failAll(succeed)
		began := time.Now()
		for _, p := range all {
			<-p.done
		}
		if took := time.Since(began); took > timeout+500*time.Millisecond {
			t.Errorf("they were done %v later", took)
		}
	})
}

// Whoever gets an answer ends the pause for the others.
func TestAnswerEndsThePauseOfTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(hanging)
		p := repeat(s, 1, time.Hour)[0]
		for len(f.scripts()) < 8 { // the pause is the longest now
			time.Sleep(time.Millisecond)
		}
		time.Sleep(timeout)
		f.failAll(succeed)
		if _, err := s.Do(background, batched("other"), timeout); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-p.done
		wantTime(t, "it was done", began, 0)
	})
}

func TestBackgroundGivesUpWhatIsTooLate(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(lost(refusal("LOADING")))
		began := time.Now()
		for _, p := range repeat(s, 3, 10*time.Second) {
			if <-p.done; p.fails == 0 {
				t.Error("it did not fail")
			}
		}
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}

func TestStoppedBackgroundSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.failAll(lost(refusal("LOADING")))
		repeat(s, 3, time.Hour)
		time.Sleep(time.Second)
		s.Stop()
		before := len(f.scripts())
		repeat(s, 3, time.Hour)
		time.Sleep(time.Minute)
		if n := len(f.scripts()) - before; n != 0 {
			t.Errorf("%d commands were sent", n)
		}
	})
}

// A caller learns that a server has more to do than it can, before his time is over; nothing is sent for him.
func TestOverloadedServerIsNotAsked(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.always = late(time.Second) // more than a quarter of the timeout
		for range 3 {
			start(background, s, numbered(200)...)
			time.Sleep(2 * time.Second)
		}
		before := len(f.scripts())
		began := time.Now()
		refused := 0
		results := start(background, s, numbered(200)...)
		for range 200 {
			r := <-results
			var overloaded *conn.Overloaded
			switch {
			case errors.As(r.err, &overloaded):
				wantFailure(t, r.err, conn.NotSent, overloaded)
				refused++
			case r.err != nil && !errors.Is(r.err, conn.ErrNoAnswer) && !errors.Is(r.err, context.DeadlineExceeded):
				t.Error(r.err)
			}
		}
		if sent := len(f.scripts()) - before; refused < 150 || sent > 202-refused {
			t.Errorf("%d were refused, %d sent", refused, sent)
		}
		if took := time.Since(began); took > timeout {
			t.Errorf("after %v", took)
		}
		time.Sleep(time.Hour)
	})
}

// So does one whose time ends before anything comes back.
func TestCommandThatCouldNotBeSentInTimeIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		_, _ = s.Do(background, batched("first"), time.Second)
		f.always = late(time.Second)
		start(background, s, numbered(200)...)
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		_, err := s.Do(background, batched("k"), 100*time.Millisecond)
		var overloaded *conn.Overloaded
		if errors.As(err, &overloaded); overloaded == nil {
			t.Fatal(err)
		}
		wantFailure(t, err, conn.NotSent, overloaded)
		wantTime(t, "it was refused", began, 100*time.Millisecond)
		time.Sleep(time.Hour)
	})
}

// What has never answered may be no Redis: that it is asked for too much would be a guess.
func TestServerThatHasNeverAnsweredIsNotOverloaded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, s *conn.Server) {
		f.always = late(10 * time.Second)
		results := start(background, s, numbered(200)...)
		for range 200 {
			if r := <-results; errors.As(r.err, new(*conn.Overloaded)) {
				t.Fatal(r.err)
			}
		}
		time.Sleep(time.Hour)
	})
}

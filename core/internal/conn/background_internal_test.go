package conn

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// idlePipeline is one of a Server whose workers do nothing.
func idlePipeline(t *testing.T, c Config) *pipeline {
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	c.Timeout, c.Workers = time.Hour, noWorkers{}
	p := New(client, c).pipelineTo(client)
	p.window.distance, p.window.late = time.Millisecond, testLate
	return p
}

// noWorkers do nothing.
type noWorkers struct{}

func (noWorkers) Start(func())             {}
func (noWorkers) Begin(interface{ Run() }) {}

// Taken out, a round trip has more than a server can do in time, or those that wait go one by one.
func TestBackgroundRoundTripsFollowTheirAnswers(t *testing.T) {
	done, refused, none := answer{}, answer{err: serverError("LOADING")}, answer{err: ErrNoAnswer}
	for name, c := range map[string]struct {
		size    int
		pause   time.Duration
		took    time.Duration
		answers []answer
		want    int
		then    time.Duration
		state   backgroundState
	}{
		"prompt":                 {4, 0, 0, []answer{done, done}, 8, 0, backgroundIdle},
		"prompt, and the most":   {maxPipeline, 0, 0, []answer{done}, maxPipeline, 0, backgroundIdle},
		"late":                   {4, 0, time.Second, []answer{done, done}, 2, 0, backgroundIdle},
		"late, and one":          {1, 0, time.Second, []answer{done}, 1, 0, backgroundIdle},
		"in part":                {4, 0, 0, []answer{done, refused}, 2, 0, backgroundIdle},
		"after a pause":          {1, time.Second, 0, []answer{done}, 2, 0, backgroundIdle},
		"silent":                 {4, 0, 0, []answer{none, none}, 1, 20 * time.Millisecond, backgroundSilent},
		"silent again":           {1, 20 * time.Millisecond, 0, []answer{none}, 1, 40 * time.Millisecond, backgroundSilent},
		"silent for a long time": {1, 400 * time.Millisecond, 0, []answer{none}, 1, 500 * time.Millisecond, backgroundSilent},
		"refused":                {4, 0, 0, []answer{refused, none}, 1, 20 * time.Millisecond, backgroundPausing},
	} {
		p := idlePipeline(t, Config{})
		b := &p.background
		b.state, b.size, b.pause = backgroundInFlight, c.size, c.pause
		p.endBackground(time.Now().Add(-c.took), c.answers)
		if b.size != c.want || b.pause != c.then || b.state != c.state {
			t.Errorf("%s: the next has %d after %v; state %v", name, b.size, b.pause, b.state)
		}
		p.stop()
	}
}

func TestPauseEndsWithAnAnswerIfItIsOfSilence(t *testing.T) {
	for _, state := range []backgroundState{backgroundSilent, backgroundPausing} {
		p := idlePipeline(t, Config{})
		resumed := make(chan struct{}, 1)
		p.background.state = state
		p.background.timer = time.AfterFunc(time.Hour, func() { resumed <- struct{}{} })
		p.endTrip(trip{sent: time.Now(), ending: endedByAnswer})
		if state == backgroundSilent {
			<-resumed
		} else if !p.background.timer.Stop() {
			t.Error("it has ended")
		}
	}
}

func TestPauseThatEndsWithNothingToDo(t *testing.T) {
	p := idlePipeline(t, Config{})
	p.background.pause, p.background.state = time.Second, backgroundSilent
	if p.resumeBackground(); p.background.pause != 0 || p.background.state != backgroundIdle {
		t.Error("what comes next waits")
	}
}

func TestStopWhileABackgroundRoundTripBegins(t *testing.T) {
	told := 0
	p := idlePipeline(t, Config{Loaded: func(Load) { told++ }})
	p.repeat(queued(false, time.Now()))
	p.server.Stop()
	p.sendBackground()
	p.meter.note(time.Now())
	if told != 0 || p.background.state != backgroundStopped {
		t.Errorf("told %d times", told)
	}
}

// A node that a cluster has since Stop repeats nothing, either.
func TestNothingIsRepeatedAfterStop(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	server := New(client, Config{Timeout: time.Hour, Workers: noWorkers{}})
	server.Stop()
	p := server.pipelineTo(client)
	if p.repeat(&Queued{}); len(p.background.waiting) > 0 || p.replicated.background.state != backgroundStopped {
		t.Error("a command is repeated")
	}
}

// A script that a server has not run yet it need not know.
func TestServerThatHasForgottenAScript(t *testing.T) {
	forgot := 0
	p := idlePipeline(t, Config{Forgot: func() { forgot++ }})
	s, unknown := NewScript("return 1"), serverError("NOSCRIPT No matching script.")
	for i, c := range []struct {
		err  error
		want int
	}{{unknown, 0}, {nil, 0}, {serverError("OOM"), 0}, {unknown, 1}, {unknown, 1}, {nil, 1}, {unknown, 2}} {
		if p.noteScript(s, c.err); forgot != c.want {
			t.Errorf("%d: it has been told %d times, want %d", i, forgot, c.want)
		}
	}
}

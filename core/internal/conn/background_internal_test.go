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

// Taken out, a flush is larger than what a server can do in time, or those that wait go one by one.
func TestFlushesFollowTheirAnswers(t *testing.T) {
	done, refused, none := answer{}, answer{err: serverError("LOADING")}, answer{err: ErrNoAnswer}
	for name, c := range map[string]struct {
		size     int
		pause    time.Duration
		took     time.Duration
		answers  []answer
		want     int
		then     time.Duration
		isSilent bool
	}{
		"prompt":                 {4, 0, 0, []answer{done, done}, 8, 0, false},
		"prompt, and the most":   {maxPipeline, 0, 0, []answer{done}, maxPipeline, 0, false},
		"late":                   {4, 0, time.Second, []answer{done, done}, 2, 0, false},
		"late, and one":          {1, 0, time.Second, []answer{done}, 1, 0, false},
		"in part":                {4, 0, 0, []answer{done, refused}, 2, 0, false},
		"after a pause":          {1, time.Second, 0, []answer{done}, 2, 0, false},
		"silent":                 {4, 0, 0, []answer{none, none}, 1, 20 * time.Millisecond, true},
		"silent again":           {1, 20 * time.Millisecond, 0, []answer{none}, 1, 40 * time.Millisecond, true},
		"silent for a long time": {1, 400 * time.Millisecond, 0, []answer{none}, 1, 500 * time.Millisecond, true},
		"refused":                {4, 0, 0, []answer{refused, none}, 1, 20 * time.Millisecond, false},
	} {
		p := idlePipeline(t, Config{})
		b := &p.background
		b.isBusy, b.size, b.pause = true, c.size, c.pause
		p.flushed(time.Now().Add(-c.took), c.answers)
		if b.size != c.want || b.pause != c.then || b.isSilent != c.isSilent || b.isBusy {
			t.Errorf("%s: the next flush is of %d after %v; silent %v, busy %v", name, b.size, b.pause, b.isSilent, b.isBusy)
		}
		p.stop()
	}
}

func TestPauseEndsWithAnAnswerIfItIsOfSilence(t *testing.T) {
	for _, isSilent := range []bool{true, false} {
		p := idlePipeline(t, Config{})
		resumed := make(chan struct{}, 1)
		p.background.isSilent = isSilent
		p.background.timer = time.AfterFunc(time.Hour, func() { resumed <- struct{}{} })
		p.endTrip(trip{sent: time.Now(), ending: endedByAnswer})
		if isSilent {
			<-resumed
		} else if !p.background.timer.Stop() {
			t.Error("it has ended")
		}
	}
}

func TestPauseThatEndsWithNothingToDo(t *testing.T) {
	p := idlePipeline(t, Config{})
	p.background.pause, p.background.isSilent = time.Second, true
	if p.resume(); p.background.pause != 0 || p.background.isSilent {
		t.Error("what comes next waits")
	}
}

func TestStopWhileAFlushBegins(t *testing.T) {
	told := 0
	p := idlePipeline(t, Config{Loaded: func(Load) { told++ }})
	p.repeat(queued(false, time.Now()))
	p.server.Stop()
	p.flush()
	p.meter.note(time.Now())
	if told != 0 || p.background.isSilent {
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
	if p.repeat(&Queued{}); len(p.background.waiting) > 0 || !p.replicated.background.isStopped {
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

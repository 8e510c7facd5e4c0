package checker

import (
	"strings"
	"testing"
)

func TestTriggersAreJudged(t *testing.T) {
	job := func(at int64, runs ...Run) Job {
		return Job{ID: "j", Key: "k", Triggered: at, Came: at + 1, Runs: runs}
	}
	dropped := func(at int64) Job { return Job{ID: "d", Key: "k", Triggered: at, Came: at + 1, Dropped: at + 2} }
	run := func(began, ended int64) Run { return Run{began, ended, true} }
	fails := func(began, ended int64) Run { return Run{began, ended, false} }
	const within, grace = 100, 3
	for _, c := range []struct {
		name string
		jobs []Job
		want string
		owed int
	}{
		{"one", []Job{job(10, run(12, 20))}, "", 1},
		{"one waits, and stands for the others", []Job{job(10, run(12, 40)), job(15, run(41, 50)), dropped(20), dropped(39)}, "", 2},
		{"lost", []Job{job(10, run(12, 40)), job(15, run(41, 50)), dropped(45)}, "no run", 2},
		{"lost, in the moment in which the run begins", []Job{job(10, run(12, 40)), dropped(12)}, "no run", 1},
		{"too late", []Job{job(10, run(12, 150)), job(15, run(151, 160))}, "no run", 2},
		{"two at once", []Job{job(10, run(12, 40)), job(15, run(39, 50))}, "two runs at once", 2},
		{"two at once, inside of a third", []Job{job(10, run(12, 90)), job(15, run(20, 30)), job(16, run(40, 50))}, "two runs at once", 3},
		{"beside one that has not ended", []Job{job(10, run(12, 0)), job(15, run(39, 50))}, "two runs at once", 2},
		{"killed, and made again", []Job{job(10, fails(12, 20), run(80, 90)), dropped(15)}, "", 1},
		{"killed, and never made again", []Job{job(10, fails(12, 20))}, "no run", 1},
		{"failed, and dropped for one after it", []Job{{Key: "k", Triggered: 10, Came: 11, Dropped: 50, Runs: []Run{fails(12, 20)}}, job(30, run(60, 70))}, "", 2},
		{"one after the other", []Job{job(10, run(12, 20)), job(30, run(32, 40))}, "", 1},
		{"two wait", []Job{job(10, run(12, 40)), job(15, run(41, 50)), job(16, run(51, 60))}, "", 3},
		{"another key", []Job{job(10, run(12, 40)), {Key: "l", Triggered: 10, Came: 11, Runs: []Run{run(13, 30)}}}, "", 1},
		{"not come yet", []Job{job(10, run(12, 40)), {Key: "k", Triggered: 13}}, "no run", 1},
	} {
		found := strings.Join(KeepOne(c.jobs, within), "\n")
		if c.want == "" && found != "" || !strings.Contains(found, c.want) {
			t.Errorf("%s: %q, want %q", c.name, found, c.want)
		}
		if owed := Owed(c.jobs, grace); owed != c.owed {
			t.Errorf("%s: %d are owed, want %d", c.name, owed, c.owed)
		}
	}
}

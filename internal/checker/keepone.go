package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Job is a task of which one runs for a key, one waits, and the others are dropped. Times are as
// in a Visit.
type Job struct {
	ID, Key   string
	Triggered int64 // it was enqueued
	Came      int64 // a worker had it first; 0: none has had it
	Dropped   int64 // 0: it was not
	Runs      []Run
}

// Run is one of its handler.
type Run struct {
	Began int64
	Ended int64 // or its process was killed; 0: it has not ended
	Done  bool  // without an error
}

func (r Run) end() int64 {
	if r.Ended == 0 {
		return math.MaxInt64
	}
	return r.Ended
}

// over is when a job owes no run any more: it was dropped, or has done its work.
func (j Job) over() int64 {
	if j.Dropped != 0 {
		return j.Dropped
	}
	for _, r := range j.Runs {
		if r.Done {
			return r.end()
		}
	}
	return math.MaxInt64
}

func jobsByKey(jobs []Job) map[string][]Job {
	byKey := map[string][]Job{}
	for _, j := range jobs {
		byKey[j.Key] = append(byKey[j.Key], j)
	}
	return byKey
}

// KeepOne names the runs of a key that were under way at once, and the jobs after whose trigger no
// run has begun within a time that was done in the end.
func KeepOne(jobs []Job, within time.Duration) (found []string) {
	for key, own := range jobsByKey(jobs) {
		var runs []Run
		for _, j := range own {
			runs = append(runs, j.Runs...)
		}
		slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(a.Began, b.Began) })
		end, last := int64(math.MinInt64), Run{}
		for _, r := range runs {
			if r.Began < end {
				found = append(found, fmt.Sprintf("%s: two runs at once: %v and %v", key, last, r))
			}
			if r.end() > end {
				end, last = r.end(), r
			}
		}
		for _, j := range own {
			if !slices.ContainsFunc(runs, func(r Run) bool {
				return r.Done && r.Began > j.Triggered && r.Began <= j.Triggered+int64(within)
			}) {
				found = append(found, fmt.Sprintf("%s: no run within %v after the trigger: %+v", key, within, j))
			}
		}
	}
	return found
}

// Owed returns how many jobs of one key have owed a run at once at most: those that run, and those
// that have come and are neither done nor dropped a grace later.
func Owed(jobs []Job, grace time.Duration) (most int) {
	for _, own := range jobsByKey(jobs) {
		type change struct {
			at int64
			by int
		}
		var changes []change
		for _, j := range own {
			if from := j.Came + int64(grace); j.Came != 0 && j.over() > from {
				changes = append(changes, change{from, 1}, change{j.over(), -1})
			}
		}
		slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
		owed := 0
		for _, c := range changes {
			owed += c.by
			most = max(most, owed)
		}
	}
	return most
}

package checker

import (
	"strings"
	"testing"
)

func TestCallsOfOnceAreJudged(t *testing.T) {
	attempt := func(token, number int64, answer string) Visit { // no answer: it has failed
		return with(hold("a", token, 10*token, 10*token+5), func(v *Visit) {
			v.Request = &Request{Attempt: int(number), Failed: answer == "", Answer: answer}
		})
	}
	again := func(at int64, answer string) Visit {
		return Visit{ID: "b", Key: "k", Called: at, Returned: at + 1, Request: &Request{Answer: answer, Again: true}}
	}
	kept := func(v Visit) Visit { // for 200
		v.Request.Kept = 200
		return v
	}
	killed := func(v Visit) Visit {
		v.Released, v.Done, v.Outcome, v.Deadline = 0, 0, "", v.Returned+50
		return v
	}
	for _, c := range []struct {
		name   string
		visits []Visit
		want   string
	}{
		{"one answer", []Visit{attempt(1, 1, "x"), again(20, "x"), again(30, "x")}, ""},
		{"failed, and made again", []Visit{attempt(1, 1, ""), attempt(2, 1, "x"), again(30, "x")}, ""},
		{"failed, and nobody knows of it", []Visit{attempt(1, 1, ""), attempt(2, 2, "x"), again(30, "x")}, ""},
		{"unknown, and made again", []Visit{attempt(1, 1, "x"), attempt(2, 2, "y"), again(30, "y")}, ""},
		{"unknown, and forgotten", []Visit{attempt(1, 1, "x"), attempt(2, 1, "y")}, "forgotten"},
		{"unknown, failed, and forgotten", []Visit{attempt(1, 1, "x"), attempt(2, 2, ""), attempt(3, 2, "y")}, "forgotten"},
		{"two answers", []Visit{attempt(1, 1, "x"), attempt(2, 2, "y"), again(30, "x"), again(40, "y")}, "not that of the last"},
		{"nobody's answer", []Visit{attempt(1, 1, "x"), again(20, "x"), again(30, "y")}, "not that of the last"},
		{"answers from before", []Visit{again(20, "x"), again(30, "x")}, ""},
		{"two from before", []Visit{again(20, "x"), again(30, "y")}, "two answers"},
		{"an attempt after an answer from before", []Visit{again(5, "x"), attempt(1, 1, "y")}, "not that of the last"},
		{"the answer of an earlier attempt", []Visit{attempt(1, 1, "x"), attempt(2, 2, "y"), again(30, "x")}, "not that of the last"},
		{"an attempt after the answer", []Visit{attempt(1, 1, "x"), again(15, "x"), attempt(2, 2, "y")}, "not that of the last"},
		{"an answer to a failed attempt", []Visit{attempt(1, 1, ""), again(20, "x")}, "not that of the last"},
		{"another key", []Visit{attempt(1, 1, "x"), with(attempt(2, 1, "y"), func(v *Visit) { v.Key = "l" })}, ""},

		{"kept for a while", []Visit{kept(attempt(1, 1, "x")), again(210, "x"), kept(attempt(22, 1, "y")), kept(again(230, "y")), kept(again(420, "y"))}, ""},
		{"kept from before", []Visit{kept(again(5, "x")), kept(attempt(1, 1, "y")), kept(again(20, "y"))}, ""},
		{"from before, and given after the attempt", []Visit{kept(attempt(1, 1, "y")), kept(again(20, "x"))}, "not that of the last"},
		{"two in one window", []Visit{kept(attempt(1, 1, "x")), again(20, "x"), kept(attempt(20, 2, "y"))}, "not that of the last"},
		{"two in one window, and nobody told", []Visit{kept(attempt(1, 1, "x")), kept(attempt(20, 1, "y"))}, "forgotten"},
		{"the answer of the window before", []Visit{kept(attempt(1, 1, "x")), kept(attempt(22, 1, "y")), again(230, "x")}, "not that of the last"},
		{"kept for too long", []Visit{kept(attempt(1, 1, "x")), kept(again(1700, "x"))}, "for too long"},
		{"killed, and its number forgotten", []Visit{killed(kept(attempt(1, 1, ""))), kept(attempt(8, 1, "y"))}, ""}, // it says that it has failed
		{"killed, and made again", []Visit{killed(kept(attempt(1, 1, "x"))), kept(attempt(8, 2, "y")), again(100, "y")}, ""},
		{"killed, and forgotten", []Visit{killed(kept(attempt(1, 1, "x"))), kept(attempt(25, 1, "y"))}, "forgotten"},
		{"killed, long ago", []Visit{killed(kept(attempt(1, 1, "x"))), kept(attempt(26, 1, "y")), again(300, "y")}, ""},
	} {
		found := strings.Join(Once(c.visits), "\n")
		if c.want == "" && found != "" || !strings.Contains(found, c.want) {
			t.Errorf("%s: %q, want %q", c.name, found, c.want)
		}
	}
}

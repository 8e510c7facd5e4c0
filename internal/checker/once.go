package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Request is what a visit knows of an idempotent request, or of a call of core.Once, for which its
// lock was taken.
type Request struct {
	Attempt int           `json:",omitempty"` // its number
	Failed  bool          `json:",omitempty"` // the attempt has ended with an error, or a status that says so
	Answer  string        `json:",omitempty"` // a digest of it, or the result, as the attempt or the visit has it
	Again   bool          `json:",omitempty"` // the answer is that of an earlier attempt
	Kept    time.Duration `json:",omitempty"` // for how long an answer is; 0: until after the end of the history
}

// forgets is the time before which nothing that is known of an attempt may be forgotten, but a
// failure: it is kept from when the attempt was over.
func (v *Visit) forgets() int64 {
	if v.Request.Kept == 0 {
		return 1<<63 - 1
	}
	return v.End() + int64(v.Request.Kept-v.Request.Kept/100) // Redis counts in whole ms
}

// Once names what is wrong with the visits that sent requests or called core.Once: those with one
// key the same one, of which one attempt's answer goes to all, for as long as it is kept.
func Once(visits []Visit) (found []string) {
	byKey := map[string][]Visit{}
	for _, v := range visits {
		if v.Request != nil {
			byKey[v.Key] = append(byKey[v.Key], v)
		}
	}
	for key, own := range byKey {
		complain := func(what string, visits ...Visit) {
			found = append(found, fmt.Sprintf("%s: %s: %v", key, what, visits))
		}
		slices.SortFunc(own, func(a, b Visit) int { return cmp.Compare(a.Token, b.Token) })
		attempts := slices.DeleteFunc(slices.Clone(own), func(v Visit) bool { return !v.Granted() })
		for i := 1; i < len(attempts); i++ {
			last, v := attempts[i-1], attempts[i]
			failed := last.Request.Failed && last.Request.Attempt == 1
			if v.Request.Attempt <= last.Request.Attempt && !failed && v.Returned < last.forgets() {
				complain("an attempt of which nobody knows was forgotten", last, v)
			}
		}
		var before *Visit // an answer from before the history
		for _, v := range own {
			if !v.Request.Again {
				continue
			}
			i := slices.IndexFunc(attempts, func(o Visit) bool { return o.Request.Answer == v.Request.Answer && !o.Request.Failed })
			switch {
			case i >= 0:
			case before == nil:
				before = &v
			case before.Request.Answer != v.Request.Answer:
				complain("two answers, and no attempt has given them", *before, v)
			}
			for _, o := range attempts[i+1:] {
				if o.Returned < v.Called || o.Request.Kept == 0 || i >= 0 && o.Returned < attempts[i].forgets() {
					complain("an answer, and not that of the last attempt", v, o)
				}
			}
			if i >= 0 && v.Request.Kept > 0 && v.Called > max(attempts[i].Done, attempts[i].Deadline)+3*int64(v.Request.Kept) {
				complain("an answer that is kept for too long", attempts[i], v)
			}
		}
	}
	return found
}

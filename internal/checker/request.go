package checker

import (
	"cmp"
	"fmt"
	"slices"
)

// Request is what a visit knows of an idempotent request, and for which its lock was
// taken.
type Request struct {
	Attempt int    `json:",omitempty"` // its number
	Failed  bool   `json:",omitempty"` // the attempt was answered with a status that says so
	Answer  string `json:",omitempty"` // a digest of it, as the attempt or the visit has it
	Again   bool   `json:",omitempty"` // the answer is that of an earlier attempt
}

// Requests names what is wrong with the visits that sent requests, those with one key the same
// one.
func Requests(visits []Visit) (found []string) {
	byKey := map[string][]Visit{}
	for _, v := range visits {
		if v.Request != nil {
			byKey[v.Key] = append(byKey[v.Key], v)
		}
	}
	for key, own := range byKey {
		slices.SortFunc(own, func(a, b Visit) int { return cmp.Compare(a.Token, b.Token) })
		complain := func(what string, visits ...Visit) {
			found = append(found, fmt.Sprintf("%s: %s: %v", key, what, visits))
		}
		var last, answered *Visit // the last attempt, and the first visit that got an answer again
		for i, v := range own {
			switch {
			case v.Granted():
				if last != nil && v.Request.Attempt <= last.Request.Attempt && !(last.Request.Failed && last.Request.Attempt == 1) {
					complain("an attempt of which nobody knows was forgotten", *last, v)
				}
				last = &own[i]
			case v.Request.Again && (answered == nil || v.Returned < answered.Returned):
				answered = &own[i]
			}
		}
		if answered == nil {
			continue
		}
		for _, v := range own {
			if v.Request.Again && v.Request.Answer != answered.Request.Answer {
				complain("two answers", *answered, v)
			}
		}
		if last != nil && last.Request.Answer != answered.Request.Answer {
			complain("an answer, and not that of the last attempt", *answered, *last)
		}
	}
	return found
}

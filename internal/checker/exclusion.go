package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Overlaps names the visits that held one lock at the same time, although their forms do
// not go together.
func Overlaps(visits []Visit) []string {
	byKey := map[string][]Visit{}
	for _, v := range visits {
		if v.Granted() && v.End() > v.Returned {
			byKey[v.Key] = append(byKey[v.Key], v)
		}
	}
	var found []string
	for key, own := range byKey {
		slices.SortFunc(own, func(a, b Visit) int { return cmp.Compare(a.Returned, b.Returned) })
		var held []Visit
		for _, v := range own {
			held = slices.DeleteFunc(held, func(o Visit) bool { return o.End() <= v.Returned })
			held = append(held, v)
			if tooMany(held, v.Returned) {
				shared := v.End()
				for _, o := range held {
					shared = min(shared, o.End())
				}
				found = append(found, fmt.Sprintf("%d hold %s for %v: %v", len(held), key, time.Duration(shared-v.Returned), held))
			}
		}
	}
	return found
}

// tooMany says whether holders of one lock at a time are more than they may be. The
// one with the greatest token came last, while all others had the lock.
func tooMany(held []Visit, at int64) bool {
	held = slices.SortedFunc(slices.Values(held), func(a, b Visit) int { return cmp.Compare(a.Token, b.Token) })
	var forms []Form
	for _, v := range held {
		form := v.formAt(at)
		if !form.admits(forms) {
			return true
		}
		forms = append(forms, form)
	}
	return false
}

// BrokenPromises names what the processes themselves saw, and holders that were told
// later than a limit that their lock is lost.
func BrokenPromises(visits []Visit, lateLimit time.Duration) []string {
	var found []string
	for _, v := range visits {
		if v.Broken != "" {
			found = append(found, fmt.Sprintf("%s: %v", v.Broken, v))
		}
		if v.Late > lateLimit {
			found = append(found, fmt.Sprintf("told %v too late: %v", v.Late, v))
		}
	}
	return found
}

package faults

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// lateLimit is how much later than its lease a running holder may learn of a loss:
// goroutines wait for their turn, too.
const lateLimit = 100 * time.Millisecond

// overlaps names the visits that held one lock at the same time.
func overlaps(visits []visit) []string {
	byKey := map[string][]visit{}
	for _, v := range visits {
		if v.granted() && v.end() > v.Returned {
			byKey[v.Key] = append(byKey[v.Key], v)
		}
	}
	var found []string
	for key, held := range byKey {
		slices.SortFunc(held, func(a, b visit) int { return cmp.Compare(a.Returned, b.Returned) })
		longest := held[0]
		for _, v := range held[1:] {
			if shared := min(longest.end(), v.end()) - v.Returned; shared > 0 {
				found = append(found, fmt.Sprintf("two hold %s for %v: %+v and %+v", key, time.Duration(shared), longest, v))
			}
			if v.end() > longest.end() {
				longest = v
			}
		}
	}
	return found
}

// brokenPromises names what the workers themselves saw, and holders that were told
// too late that their lock is lost.
func brokenPromises(visits []visit) []string {
	var found []string
	for _, v := range visits {
		if v.Broken != "" {
			found = append(found, fmt.Sprintf("%s: %+v", v.Broken, v))
		}
		if v.Late > lateLimit {
			found = append(found, fmt.Sprintf("told %v too late: %+v", v.Late, v))
		}
	}
	return found
}

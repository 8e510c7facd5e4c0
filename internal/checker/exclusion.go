package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Overlaps names the visits that held one lock at the same time.
func Overlaps(visits []Visit) []string {
	byKey := map[string][]Visit{}
	for _, v := range visits {
		if v.Granted() && v.End() > v.Returned {
			byKey[v.Key] = append(byKey[v.Key], v)
		}
	}
	var found []string
	for key, held := range byKey {
		slices.SortFunc(held, func(a, b Visit) int { return cmp.Compare(a.Returned, b.Returned) })
		longest := held[0]
		for _, v := range held[1:] {
			if shared := min(longest.End(), v.End()) - v.Returned; shared > 0 {
				found = append(found, fmt.Sprintf("two hold %s for %v: %v and %v", key, time.Duration(shared), longest, v))
			}
			if v.End() > longest.End() {
				longest = v
			}
		}
	}
	return found
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

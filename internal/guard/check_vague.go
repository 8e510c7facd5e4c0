package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// vague are names of path parameters, in lower case, that stand for different things on
// different routes.
var vague = []string{"id", "uuid", "guid", "key", "name", "slug", "code", "number", "no", "nr", "path", wildcard}

func isVague(name string) bool { return slices.Contains(vague, strings.ToLower(name)) }

// vagueKeys are the keys by such path parameters, and where they were seen.
type vagueKeys map[vagueKey][]resource

type vagueKey struct {
	locker      *core.Locker
	name, param string // of the key, and of the parameter in it
}

// resource is what a path parameter stands for: the segment before it.
type resource struct{ segment, route string }

// fault says that the key of a route is also that of an earlier route, where it stands for another
// resource. It is said once for each.
func (k vagueKeys) fault(seen SeenRoute, locker *core.Locker, key keyfunc.Description) string {
	parts := strings.Split(key.Name, ":")
	for _, param := range key.Params {
		segment := segmentBefore(param, seen.Pattern)
		if segment == "" || !slices.Contains(parts, param) || !isVague(param) {
			continue
		}
		its := vagueKey{locker, key.Name, param}
		if slices.ContainsFunc(k[its], func(r resource) bool { return r.segment == segment }) {
			continue
		}
		k[its] = append(k[its], resource{segment, strings.TrimSpace(seen.Method + " " + seen.Pattern)})
		if other := k[its][0]; other.segment != segment {
			name := param
			if param == wildcard {
				name = "path"
			}
			return fmt.Sprintf("the path parameter %q is of %q here and of %q in %q, and one value of both is one lock: "+
				"give the routes of %q a guard of their own, whose key says so, as in By(keyfunc.Named(%q, keyfunc.Param(%q))) or ByTemplate(%q)",
				param, segment, other.segment, other.route, segment, segment+"."+name, param, segment+":{param."+param+"}")
		}
	}
	return ""
}

// segmentBefore returns the segment of a pattern in front of that of a path parameter, empty
// when there is none, or another parameter.
func segmentBefore(param, pattern string) string {
	segments := strings.Split(strings.ReplaceAll(pattern, `\:`, ""), "/")
	isParam := func(segment string) bool { return strings.ContainsAny(segment, ":{*") }
	for i, segment := range segments {
		if i == 0 || !isParam(segment) || isParam(segments[i-1]) {
			continue
		}
		if name := bareName(segment); name == param || name == "" && param == wildcard {
			return segments[i-1]
		}
	}
	return ""
}

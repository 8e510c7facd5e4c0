package checker

import "strconv"

// Form is how a visit wants its lock: alone, or together with others.
type Form struct {
	Shared  bool `json:",omitempty"` // together with all who share it
	Permits int  `json:",omitempty"` // together with others that have permits, as one of so many at most
}

// admits says whether a call in this form may join holders in some forms.
func (f Form) admits(held []Form) bool {
	for _, h := range held {
		if !f.goesWith(h) {
			return false
		}
	}
	return len(held) == 0 || f.Shared || len(held) < f.Permits
}

// goesWith says whether holders in both forms may hold a lock together.
func (f Form) goesWith(o Form) bool {
	return f.Shared && o.Shared || f.Permits > 0 && o.Permits > 0
}

// String is how it is written in the story of a run.
func (f Form) String() string {
	switch {
	case f.Shared:
		return "shared"
	case f.Permits > 0:
		return "one of " + strconv.Itoa(f.Permits)
	}
	return "alone"
}

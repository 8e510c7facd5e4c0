package checker

import "strconv"

// Form is how a visit wants its lock: alone, or together with others.
type Form struct {
	Shared  bool `json:",omitempty"` // together with all who share it
	Permits int  `json:",omitempty"` // together with others that have permits, so many of them at most
	Weight  int  `json:",omitempty"` // how many of the permits it takes; 0: one
}

// admits says whether a call in this form may join holders in some forms.
func (f Form) admits(held []Form) bool {
	taken := f.Taken()
	for _, h := range held {
		if !f.goesWith(h) {
			return false
		}
		taken += h.Taken()
	}
	return len(held) == 0 || f.Shared || taken <= f.Permits
}

// Taken is how many permits it takes, where there are some.
func (f Form) Taken() int { return max(f.Weight, 1) }

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
		return strconv.Itoa(f.Taken()) + " of " + strconv.Itoa(f.Permits)
	}
	return "alone"
}

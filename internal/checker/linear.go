package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// step is an operation on a lock, for the model.
type step struct {
	kind  string // acquire, share, release, lapse
	token int64
	form  Form
	sure  bool // somebody has confirmed it
}

// lockState is a lock in the model: who holds it, in the order in which they came; the
// greatest token ever given; the form of those that came last, and the greatest token given
// in others before them.
type lockState struct {
	held   []holder
	last   int64
	form   Form
	before int64
}

type holder struct {
	token int64
	form  Form
}

func (s lockState) forms() (forms []Form) {
	for _, h := range s.held {
		forms = append(forms, h.form)
	}
	return forms
}

// lockModel is a lock with a set of holders whose forms go together, one if it is held
// alone, and with tokens that grow.
//
//	acquire  the form admits it beside those who hold, and the token is greater than all before. Of those that
//	         may hold together it is greater than all of others only: a call may get what its process was
//	         granted before the call began
//	share    a holder that is alone lets others share it; one that nobody confirmed may come when it holds nothing
//	release  a holder gives it back
//	lapse    the lock of a holder ends by itself, or by an Unlock that nobody confirmed
//
// last is the greatest token of earlier histories.
func lockModel(last int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{last: last, before: last} },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(lockState), input.(step)
			if op.kind == "acquire" {
				if !op.form.goesWith(s.form) {
					s.form, s.before = op.form, s.last
				}
				held := append(slices.Clone(s.held), holder{op.token, op.form})
				return op.token > s.before && op.form.admits(s.forms()), lockState{held, max(s.last, op.token), s.form, s.before}
			}
			if op.kind == "share" {
				i := slices.IndexFunc(s.held, func(h holder) bool { return h.token == op.token })
				if i < 0 {
					return !op.sure, s
				}
				held := slices.Clone(s.held)
				held[i].form = Form{Shared: true}
				return true, lockState{held, s.last, held[i].form, s.last}
			}
			left := slices.DeleteFunc(slices.Clone(s.held), func(h holder) bool { return h.token == op.token })
			return len(left) < len(s.held), lockState{left, s.last, s.form, s.before}
		},
		Equal: func(a, b any) bool {
			s, o := a.(lockState), b.(lockState)
			return s.last == o.last && s.form == o.form && s.before == o.before && slices.Equal(s.held, o.held)
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	}
}

// operations turns the visits of one key into a history. A call that returned
// without a lock leaves no trace in it, nor does one that never returned: whatever
// it took, nobody has seen it.
func operations(visits []Visit) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(kind string, v Visit, from, to int64) {
		ops = append(ops, porcupine.Operation{Input: step{kind, v.Token, v.Form, to != math.MaxInt64}, Call: from, Return: to})
	}
	for _, v := range visits {
		if !v.Granted() {
			continue
		}
		add("acquire", v, v.Called, v.Returned)
		if v.Downgraded != 0 {
			add("share", v, v.Downgraded, cmp.Or(v.Sharing, math.MaxInt64))
		}
		if v.Outcome == Confirmed {
			add("release", v, v.Released, v.Done)
		} else {
			// A holder whose time was over when it heard of its luck held nothing,
			// but its lock did not end before it began.
			add("lapse", v, max(v.End(), v.Called), math.MaxInt64)
		}
	}
	return ops
}

// Linearizable decides whether the visits of one key are the history of a lock whose
// tokens are all greater than last. It gives up the search after a while.
func Linearizable(visits []Visit, last int64, within time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(lockModel(last), operations(visits), within)
}

// FirstWrong returns the last visits of the shortest beginning that is not the history of a lock.
func FirstWrong(visits []Visit, last int64, within time.Duration) []Visit {
	visits = slices.SortedFunc(slices.Values(visits), func(a, b Visit) int { return cmp.Compare(a.Returned, b.Returned) })
	visits = slices.DeleteFunc(visits, func(v Visit) bool { return !v.Granted() })
	wrong := sort.Search(len(visits), func(n int) bool { return Linearizable(visits[:n], last, within) == porcupine.Illegal })
	return visits[max(0, wrong-4):min(wrong, len(visits))]
}

package checker

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// step is an operation on a lock, for the model.
type step struct {
	kind  string // acquire, release, lapse
	token int64
}

// lockState is a lock in the model: who holds it, by token, and the greatest token
// ever given.
type lockState struct{ holder, last int64 }

// lockModel is a lock that one holder has at a time, with tokens that grow.
//
//	acquire  the lock is free, and the token greater than all before
//	release  the holder frees it
//	lapse    the lock of the holder ends by itself, or by an Unlock that nobody confirmed
//
// last is the greatest token of earlier histories.
func lockModel(last int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{last: last} },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(lockState), input.(step)
			if op.kind == "acquire" {
				return s.holder == 0 && op.token > s.last, lockState{op.token, op.token}
			}
			return s.holder == op.token, lockState{0, s.last}
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
		ops = append(ops, porcupine.Operation{Input: step{kind, v.Token}, Call: from, Return: to})
	}
	for _, v := range visits {
		if !v.Granted() {
			continue
		}
		add("acquire", v, v.Called, v.Returned)
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

package faults

import (
	"context"
	"fmt"

	"github.com/latchkey-go/latchkey/core"
)

// scene is a worker that does step by step what it is told, instead of acting by
// itself.
type scene struct {
	worker *worker
	lock   *core.Lock
	found  access
}

// play carries one order out and returns what came of it.
func (s *scene) play(o order) string {
	switch o.Do {
	case "hold": // and read
		k, err := s.worker.locker.Lock(context.Background(), o.Key, core.Lease(o.Lease))
		if err != nil {
			return "refused: " + err.Error()
		}
		s.lock, s.found = k, s.worker.read(k)
		return "holding"
	case "write": // without a look at the context
		if s.found = s.worker.write(s.found); s.found.Stale {
			return "rejected"
		}
		return "written"
	case "unlock":
		if err := s.lock.Unlock(context.Background()); err != nil {
			return kindOf(err)
		}
		return "unlocked"
	}
	return fmt.Sprintf("unknown order %q", o.Do)
}

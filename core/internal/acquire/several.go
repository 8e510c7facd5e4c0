package acquire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Several is the locks of a call of LockAll.
type Several struct {
	Handles  []*lease.Handle // as they were taken, each under the context of the one before
	acquirer *Acquirer
	cancel   context.CancelCauseFunc // the contexts of all
}

// Context returns the context that holds them all.
func (s *Several) Context() context.Context { return s.Handles[len(s.Handles)-1].Context() }

// Release ends the holds in reverse order. In the background the error is what
// is known before.
func (s *Several) Release(ctx context.Context, work store.Work, mode option.ReleaseMode) error {
	if !s.keepWindows(lasting(ctx)) {
		work = store.Failed
	}
	all, errs := make([]release, 0, len(s.Handles)), []error(nil)
	for _, h := range slices.Backward(s.Handles) {
		switch left, leaves, err := h.Leave(); {
		case leaves:
			all = append(all, release{acquirer: s.acquirer, Departure: left})
		case err != nil:
			errs, work = append(errs, err), store.Failed
		}
	}
	s.cancel(nil)
	all = slices.DeleteFunc(all, func(r release) bool { return s.acquirer.handOffInMemory(r.Departure) })
	switch {
	case len(all) == 0:
	case mode == option.BackgroundRelease && !slices.ContainsFunc(all, func(r release) bool { return !r.IsAlone() }):
		for _, r := range all {
			r.sendInBackground(work)
		}
	default:
		until := time.Now().Add(s.acquirer.Timeout)
		for together := range slices.Chunk(all, maxTogether) {
			errs = append(errs, endAll(lasting(ctx), together, work, until))
		}
	}
	return errors.Join(errs...)
}

// endAll releases what has left its leases. What is not confirmed by a time goes on in the background.
func endAll(ctx context.Context, all []release, work store.Work, until time.Time) error {
	var errs []error
	releases := make([]*store.Release, len(all))
	for i := range all {
		all[i].prepare(work)
		all[i].over = until
		releases[i] = &all[i].command
	}
	a := all[0].acquirer
	for i, released := range a.Store.ReleaseAll(ctx, releases, time.Until(until)) {
		if err := all[i].Retire(all[i].confirm(ctx, released.Answer, released.Err)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keepWindows says that the locks are to leave their dedup windows: it asks Redis whether it has all of them.
func (s *Several) keepWindows(ctx context.Context) bool {
	if len(s.Handles) > 1 && slices.ContainsFunc(s.Handles, func(h *lease.Handle) bool { return h.Acquisition().Window > 0 }) {
		var asked sync.WaitGroup
		for _, h := range s.Handles {
			asked.Add(1)
			s.acquirer.workers.Start(func() {
				defer asked.Done()
				_ = h.Refresh(ctx) // a loss is noted in the lease
			})
		}
		asked.Wait()
	}
	return !slices.ContainsFunc(s.Handles, func(h *lease.Handle) bool { return !h.MayLeaveWindow() })
}

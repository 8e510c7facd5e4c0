package lease

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// lease is one acquisition as this process believes it: how long it lasts, and which handles
// share it. A fresh lock has one; re-entries through the context join it. The watchdog renews it.
type lease struct {
	Acquisition
	registry *Registry
	first    *Handle       // whose call has taken it: the log is told of the lease in the context of that
	since    schedule.Time // when it was taken

	mu             sync.Mutex
	life           life.Life
	due            schedule.Time // when the scheduler calls Due, as it was told; 0: not at all
	renewals       uint32        // confirmed
	refreshed      bool          // not by the watchdog: Redis may have it for longer than is known here
	entered        bool          // by a second handle, at some time
	work           store.Work    // what its holder has said of it
	downgrade      downgrade
	ownerKnown     bool          // others may have holds of the owner. It does not change once the last handle has left
	sharesOwner    bool          // other locks have the owner
	mayLast        bool          // it may be held for long
	longLines      uint8         // of the log, which say that it is
	schedule.Timer               // here, for its size
	answer         *store.Answer // to the request; nil: it is not known yet
	handles        *Handle       // not unlocked yet: a list, for nearly all leases have one
	observed       Observer      // nil: nobody hears of it, or it has ended
}

// downgrade is what is known of the requests to downgrade a lock.
type downgrade uint8

const (
	notAsked   downgrade = iota // there was none, or it has surely done nothing
	asked                       // by one request, which is not answered
	unsettled                   // others share the lock, or may yet: renewals say so
	downgraded                  // others share it
)

// Handle is a lock as a call has it: one of those that share a lease. Callers get it as a core.Lock.
type Handle struct {
	lease   *lease
	outer   *Handle // what the context held before
	group   *Group
	ctx     context.Context  // its ownership, as Observers have it
	public  any              // what callers have of it; nil: nobody has asked for it. Guarded by under.mu
	next    *Handle          // of the lease. Guarded by lease.mu
	hold    string           // in Redis
	resends *conn.Resends    // of its acquisition
	under   leaseContext     // what its context descends from
	state   life.HandleState // guarded by lease.mu
	reentry bool             // of a lease that had a handle
}

// Memory is what a lock takes that is not entered, in one piece.
type Memory struct {
	lease lease
	first Handle
}

// MemoryForOneOwner returns that for several locks, which have one owner.
func MemoryForOneOwner(locks int) []Memory {
	all := make([]Memory, locks)
	for i := range all {
		all[i].lease.sharesOwner = true
	}
	return all
}

// takeOut takes a handle out. s.mu is held.
func (s *lease) takeOut(h *Handle) {
	at := &s.handles
	for *at != h {
		at = &(*at).next
	}
	*at, h.next = h.next, nil
}

// releaseOf is the release of a hold. s.mu is held.
func (s *lease) releaseOf(h *Handle, work store.Work) store.Release {
	r := store.Release{
		Holding: s.holding(h), Terms: s.Terms, Token: s.RedisToken, LastToken: s.Token, Entered: s.entered,
		Work: work, MayArrive: h.resends.MayArriveTwice(), Context: s.first.under.call,
	}
	if s.life.Times().Granted {
		r.Lease = 0
	}
	if r.Work == store.Done {
		r.Answer = s.answer
	}
	return r
}

// holding is a hold as Redis knows it.
func (s *lease) holding(h *Handle) store.Holding {
	return store.Holding{Name: s.Name, Owner: s.Owner, Hold: h.hold}
}

// snapshot is false for a lease that is lost, or being released.
func (s *lease) snapshot(now schedule.Time) (h HeldLease, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return HeldLease{
		Terms: s.Terms, Key: s.Name.Key(), Owner: s.Owner, Token: s.Token, Since: s.since,
		TTL: max(time.Duration(s.life.StopAt()-now), 0), Holds: s.life.Holds(), Renewals: int(s.renewals), IsOverdue: s.life.IsOverdue(),
	}, s.life.State().HasHandles()
}

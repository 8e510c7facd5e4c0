package core

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Info is what Redis says about a lock at one moment.
type Info struct {
	Locked bool   // nobody else could take the lock for itself: it is not free
	State  State  // what it is
	Form   string // "exclusive", "shared" or "permits"; empty when nobody holds it, or something foreign is there
	// Owner is who holds it, empty when nobody does, or several. When a lock is handed off in
	// memory, calls of one process follow one another under one owner, for 10 ms. To enter by
	// [Owner], take the id from [Lock.ShareOwner] of a lock that is held.
	Owner   string
	Count   int           // of all holds
	TTL     time.Duration // how long it lasts without renewal; negative when it does not end
	Holders []Holder      // one of an exclusive lock, more of the other forms, by their owners
	Attempt int           // of [Once], or at an idempotent request: the one under way, or the last one; 0: it is of none
	// HandedOverBy is the owner who has handed the lock over, empty when another version has; Ticket is
	// the SHA-1 of the ticket, in hexadecimal digits. A task's ticket is its ID.
	HandedOverBy, Ticket string
	Queue                []QueueEntry // the first 100 processes that wait, by their arrival; one that died may be among them
}

// Holder is one of those who hold a lock.
type Holder struct {
	Owner  string        // as in [Info]
	Count  int           // of its holds
	Weight int           // how many permits it has, see [Weight]; 0 in other forms
	TTL    time.Duration // how long it holds the lock without renewal, as in [Info]
	// HeldFor is how long it has held the lock by the clock of Redis; 0 when Redis does not tell, as of
	// Redisson's. A lock that was handed off in memory counts from the first of these calls.
	HeldFor time.Duration
	Granted bool // a release granted it the lock less than a second ago, and its process has not confirmed that
	// Lease is what its process renews, the last time Lease - TTL ago; 0 when it does not, or Redis does not tell.
	Lease time.Duration
}

// QueueEntry is a process that waits for a lock. Calls of it that have chosen an [Owner] wait by entries of their own.
type QueueEntry struct {
	Process Process       // as [ProcessOf] reads it; zero for what is not latchkey's
	Owner   string        // that the calls have chosen; mostly empty
	Form    string        // in which they want the lock
	Waited  time.Duration // by the clock of Redis
	Polls   bool          // it asks again and again, because it hears no messages
}

// Inspect reads the state of a lock, which may have changed when it returns. It blocks for one
// request, at most for [Timeout] or until ctx ends. It fails with [ErrInvalidKey],
// [ErrUnavailable], [ErrClosed] or the context's error.
func (l *Locker) Inspect(ctx context.Context, key string) (Info, error) {
	n, err := l.usableName("inspecting", key)
	if err != nil {
		return Info{}, err
	}
	return inspect(ctx, &l.acquirer.Backend, n, false)
}

func inspect(ctx context.Context, b *lease.Backend, n store.Name, sure bool) (Info, error) {
	state, err := b.Store.Inspect(ctx, n, sure)
	if err != nil {
		return Info{}, errorsOf{}.Unanswered(ctx, "inspecting", n.Key(), err)
	}
	info := Info{
		Locked: state.Status != store.StatusFree, State: states[state.Status],
		Owner: state.Owner, Count: state.Holds, TTL: state.TTL,
		Attempt: state.Attempt, HandedOverBy: state.By, Ticket: state.Ticket,
	}
	for _, h := range state.Holders {
		info.Holders = append(info.Holders, Holder(h))
	}
	for _, q := range state.Queue {
		process, _ := ProcessOf(q.Process)
		info.Queue = append(info.Queue, QueueEntry{process, q.Owner, q.Form.Label(), q.Waits, q.Polls})
	}
	if info.Holders != nil && info.State != StateForeign {
		info.Form = state.Form.Label()
	}
	return info, nil
}

// Count returns how many holds its owner has in Redis, this one included, and not those of others who
// share the lock or have a permit. It asks Redis, at most for [Timeout] or until ctx ends. It fails
// with [ErrLost] when this owner no longer holds the lock, [ErrNotHeld] after Unlock, [ErrUnavailable],
// or the context's error.
func (k *Lock) Count(ctx context.Context) (int, error) {
	h, err := k.inspect(ctx)
	return h.Count, err
}

// TTL returns how long the owner would hold the lock in Redis without further renewal. It
// blocks and fails as [Lock.Count] does.
func (k *Lock) TTL(ctx context.Context) (time.Duration, error) {
	h, err := k.inspect(ctx)
	return h.TTL, err
}

func (k *Lock) inspect(ctx context.Context) (Holder, error) {
	h := k.handle
	if err := h.Check(); err != nil {
		return Holder{}, err
	}
	asked := schedule.Now()
	info, err := inspect(ctx, h.Backend(), h.Acquired().Name, true)
	if err != nil {
		return Holder{}, err
	}
	if i := slices.IndexFunc(info.Holders, func(holder Holder) bool { return holder.Owner == h.Acquired().Owner }); i >= 0 {
		return info.Holders[i], nil
	}
	if err := h.NotFound(asked); err != nil {
		return Holder{}, err
	}
	_ = conn.Pause(ctx, inspectAgain)
	return k.inspect(ctx)
}

// inspectAgain is when a lock that is being handed over is looked at again.
const inspectAgain = 20 * time.Millisecond

// ForceUnlock frees a lock whoever holds it, or ends what nobody holds, such as its dedup window, and
// wakes who waits. It reports whether there was anything to free. A holder learns of it at its next
// renewal: its Context is cancelled with [ErrLost]. Until then two may be at work, so this is for
// operators, not for programs. An attempt, of [Once] or at an idempotent request, leaves its outcome
// unknown; forced again, that is forgotten. It blocks and fails as [Locker.Inspect] does; after
// [ErrUnavailable] it may have been done.
//
// Since a look at the lock another may have taken it. With owners, as [Locker.Inspect] has told them,
// it evicts only those, and the other holders stay. An empty owner stands for what nobody holds: a
// dedup window, a lock that is parked, a request that is known, a string. It reports false, and does nothing,
// when none of them holds the lock by now, or when there is a holder where owner is empty. Redis
// compares and frees in one step for each owner; in a quorum each member does so for itself. A call to
// which the lock was handed off in memory, within 10 ms, has the same owner and is not spared.
func (l *Locker) ForceUnlock(ctx context.Context, key string, owners ...string) (bool, error) {
	const doing = "forcing"
	n, err := l.usableName(doing, key)
	if err != nil {
		return false, err
	}
	freed := false
	if len(owners) == 0 {
		freed, err = l.acquirer.Store.Force(ctx, n, nil)
	}
	for i := 0; i < len(owners) && err == nil; i++ {
		var one bool
		one, err = l.acquirer.Store.Force(ctx, n, &owners[i])
		freed = freed || one
	}
	if err != nil {
		return false, errorsOf{}.Unanswered(ctx, doing, key, err)
	}
	l.acquirer.MayBeFree(n.Lock())
	if freed {
		l.acquirer.Log.Each(ctx, slog.LevelInfo, "a lock was freed by ForceUnlock", "key", key)
	}
	return freed, nil
}

// Snapshot is what one Locker holds and waits for. Redis is not asked: it is what this process
// believes.
type Snapshot struct {
	Process Process       // what the Locker says of itself, in the owner of what it holds
	Held    []HeldLock    // by key, those with one key by age
	Waiting []AwaitedLock // by key; some may be in Held
}

// HeldLock is a lock that is held. One that was entered through its context is listed once, one that
// calls share, by [Shared], [Permits] or one [Owner], once for each of these calls.
type HeldLock struct {
	Key      string        // as the caller wrote it
	Owner    string        // who holds it in Redis, as [Lock.Owner]
	Form     string        // "exclusive", "shared" or "permits"
	Token    int64         // for fencing
	Since    time.Time     // when it was taken, by the clock of this machine
	TTL      time.Duration // until Context ends with [ErrLost] if nothing renews it; never negative
	Count    int           // of its holds: handles that are not unlocked yet
	Renewals int           // that Redis has confirmed
	Waiters  int           // calls of this Locker that wait for it
	Fixed    bool          // nothing renews it, as with [FixedLease]
	Overdue  bool          // held for longer than [MaxHold]: Context has ended, the work goes on
}

// AwaitedLock is a lock that calls of this Locker wait for.
type AwaitedLock struct {
	Key     string    // as the caller wrote it
	Waiters int       // the number of calls, at least 1
	Since   time.Time // when the first of them has come, by the clock of this machine
}

// Snapshot lists what the Locker holds and waits for, with keys only of those, at a small part of the
// cost. Each entry is true of one moment, the list is not: locks come and go meanwhile. It asks nobody
// and holds nobody up for more than some microseconds, but 10,000 locks take some milliseconds of a
// processor. Safe for concurrent use, also after [Locker.Close].
func (l *Locker) Snapshot(keys ...string) Snapshot {
	var locks []string
	if len(keys) == 0 {
		locks = l.acquirer.WaitedFor()
	}
	for _, key := range keys {
		if n, err := l.acquirer.Name(key); err == nil && !slices.Contains(locks, n.Lock()) {
			locks = append(locks, n.Lock())
		}
	}
	waiting := make([]AwaitedLock, 0, len(locks))
	waiters := make(map[string]int, len(locks))
	for _, lock := range locks {
		if w, ok := l.acquirer.Waiters(lock); ok {
			waiting = append(waiting, AwaitedLock{Key: w.Key, Waiters: w.Calls, Since: w.Since.Round(0)})
			waiters[w.Key] = w.Calls
		}
	}
	slices.SortFunc(waiting, func(a, b AwaitedLock) int { return strings.Compare(a.Key, b.Key) })

	leases := l.acquirer.Held(func(key string) bool { return len(keys) == 0 || slices.Contains(keys, key) })
	held := make([]HeldLock, len(leases))
	for i, h := range leases {
		held[i] = HeldLock{
			Key: h.Key, Owner: h.Owner, Form: h.Form.Label(), Token: h.Token, Since: h.Since.Wall().Round(0), TTL: h.TTL, Count: h.Holds,
			Renewals: h.Renewals, Waiters: waiters[h.Key], Fixed: h.Fixed, Overdue: h.IsOverdue,
		}
	}
	slices.SortFunc(held, func(a, b HeldLock) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), a.Since.Compare(b.Since))
	})
	return Snapshot{l.self, held, waiting}
}

// usableName is the name of the lock of a key for an operation, as errors call it, of a Locker that must not be closing.
func (l *Locker) usableName(doing, key string) (store.Name, error) {
	n, err := l.acquirer.Name(key)
	if err == nil && l.acquirer.IsClosing() {
		err = errorsOf{}.Closed(doing, key)
	}
	return n, err
}

package lockpage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/contention"
)

// maxListed bounds each list of a report.
const maxListed = 1000

// view is what a request asks to see.
type view struct {
	key     string
	lookUp  bool // key is to be looked up
	filter  string
	sort    string // "" for key, age, waiters
	refresh bool   // by itself, every few seconds
	outcome string // of the POST before
}

func readView(q url.Values) view {
	v := view{
		key:     q.Get("key"),
		lookUp:  q.Has("key"),
		filter:  q.Get("filter"),
		refresh: q.Has("refresh"),
	}
	if s := q.Get("sort"); s == "age" || s == "waiters" {
		v.sort = s
	}
	return v
}

// link leads to the view. It is relative and keeps the path, whatever that is.
func (v view) link() string {
	q := url.Values{}
	for name, value := range map[string]string{"filter": v.filter, "sort": v.sort} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if v.lookUp {
		q.Set("key", v.key)
	}
	if v.refresh {
		q.Set("refresh", "")
	}
	return pathless + q.Encode()
}

// report is what the lock page says, in JSON and in HTML.
type report struct {
	Host    string             `json:"host"`
	PID     int                `json:"pid"`
	Name    string             `json:"name"` // of the process, in owners
	Since   time.Time          `json:"since"`
	Time    time.Time          `json:"time"`
	Outcome string             `json:"outcome,omitempty"`
	LookUp  *lookUp            `json:"lookup,omitempty"`
	Held    *list[heldLock]    `json:"held,omitempty"` // nil in the look-up of a key
	Waiting *list[waitingLock] `json:"waiting,omitempty"`

	view   view
	forces bool
}

// list is what is listed of all there is.
type list[T any] struct {
	Total    int `json:"total"`
	Matching int `json:"matching"` // the filter
	Locks    []T `json:"locks"`
}

type heldLock struct {
	Key      string    `json:"key"`
	Owner    string    `json:"owner"`
	Form     string    `json:"form"`
	Token    int64     `json:"token"`
	Since    time.Time `json:"since"`
	TTL      int64     `json:"ttl_ms"`
	Count    int       `json:"count"`
	Renewals int       `json:"renewals"`
	Waiters  int       `json:"waiters"`
	Fixed    bool      `json:"fixed"`
	Escaped  string    `json:"escaped,omitempty"` // the key, where it is not UTF-8
	Overdue  bool      `json:"overdue"`

	Chosen bool `json:"-"` // the owner is not one of the process
}

type waitingLock struct {
	Key     string    `json:"key"`
	Since   time.Time `json:"since"`
	Waiters int       `json:"waiters"`
	Escaped string    `json:"escaped,omitempty"`
}

// holder is one of those who hold a lock.
type holder struct {
	Owner   string                  `json:"owner"`
	Process *contention.ProcessJSON `json:"process,omitempty"` // of the owner, where its text shows one
	Count   int                     `json:"count"`
	Weight  int                     `json:"permits,omitempty"` // that it has
	TTL     int64                   `json:"ttl_ms"`            // negative: it does not end
	HeldFor int64                   `json:"held_ms,omitempty"` // 0: Redis does not tell
	Renewed *int64                  `json:"renewed_ms,omitempty"`
	Stopped bool                    `json:"-"`                   // it does not renew any more
	Here    *heldLock               `json:"held_here,omitempty"` // this process has it
}

// lookUp is what Redis says of a key.
type lookUp struct {
	Key     string                   `json:"key"`
	Escaped string                   `json:"escaped,omitempty"`
	State   core.State               `json:"state"`
	Form    string                   `json:"form,omitempty"`
	holder                           // where there is one. Of several the numbers are those of all, and there is no owner
	Holders []holder                 `json:"holders,omitempty"` // of a lock that several may hold
	Waiters int                      `json:"waiters"`           // calls of this process
	Queue   []contention.WaitingJSON `json:"waiting,omitempty"` // processes
	Error   string                   `json:"error,omitempty"`
	Meant   string                   `json:"did_you_mean,omitempty"` // the key without the prefix that it has twice

	status int // if not 200
}

// stateUnknown is that of a key where Redis has not told it.
const stateUnknown core.State = "unknown"

func (p *lockPage) report(ctx context.Context, locker *core.Locker, v view) *report {
	r := &report{
		Host: p.host, PID: p.pid, Time: time.Now().UTC().Truncate(time.Millisecond),
		Outcome: v.outcome, view: v, forces: p.ForceUnlock,
	}
	if v.lookUp {
		here := locker.Snapshot(v.key)
		r.Name, r.Since = here.Process.Name, here.Process.Since.UTC()
		r.LookUp = lookUpKey(ctx, locker, v.key, here)
		return r // the lists of many locks cost a thousand times as much
	}
	snapshot := locker.Snapshot()
	r.Name, r.Since = snapshot.Process.Name, snapshot.Process.Since.UTC()
	filter := strings.ToLower(v.filter)
	matches := func(key string) bool { return contention.Matches(strings.ToLower(key), filter) }
	r.Held = listed(snapshot.Held, v.sort,
		func(h core.HeldLock) bool {
			return matches(h.Key) || contention.OwnerMatches(strings.ToLower(h.Owner), filter)
		},
		func(h core.HeldLock) (time.Time, int) { return h.Since, h.Waiters },
		func(h core.HeldLock) heldLock {
			held := newHeldLock(h)
			of, _ := core.ProcessOf(h.Owner)
			held.Chosen = of != snapshot.Process
			return held
		})
	r.Waiting = listed(snapshot.Waiting, v.sort,
		func(w core.AwaitedLock) bool { return matches(w.Key) },
		func(w core.AwaitedLock) (time.Time, int) { return w.Since, w.Waiters },
		func(w core.AwaitedLock) waitingLock {
			return waitingLock{w.Key, w.Since.UTC().Truncate(time.Millisecond), w.Waiters, contention.Escaped(w.Key)}
		})
	return r
}

// listed sorts what matches, and converts as much of it as is shown. all is sorted
// by key.
func listed[From, To any](
	all []From, sort string, matches func(From) bool, order func(From) (since time.Time, waiters int), convert func(From) To,
) *list[To] {
	l := &list[To]{Total: len(all), Locks: []To{}}
	all = slices.DeleteFunc(all, func(f From) bool { return !matches(f) })
	l.Matching = len(all)
	if sort != "" {
		slices.SortStableFunc(all, func(a, b From) int {
			sinceA, waitersA := order(a)
			sinceB, waitersB := order(b)
			if sort == "age" {
				return sinceA.Compare(sinceB)
			}
			return cmp.Compare(waitersB, waitersA)
		})
	}
	for _, f := range all[:min(len(all), maxListed)] {
		l.Locks = append(l.Locks, convert(f))
	}
	return l
}

func newHeldLock(h core.HeldLock) heldLock {
	return heldLock{
		Key: h.Key, Owner: h.Owner, Form: h.Form, Token: h.Token, Count: h.Count,
		Since: h.Since.UTC().Truncate(time.Millisecond), TTL: h.TTL.Milliseconds(),
		Renewals: h.Renewals, Waiters: h.Waiters, Fixed: h.Fixed, Overdue: h.Overdue, Escaped: contention.Escaped(h.Key),
	}
}

func lookUpKey(ctx context.Context, locker *core.Locker, key string, here core.Snapshot) *lookUp {
	found := &lookUp{Key: key, Escaped: contention.Escaped(key), State: stateUnknown}
	for _, w := range here.Waiting {
		found.Waiters = w.Waiters
	}
	info, err := locker.Inspect(ctx, key)
	switch {
	case errors.Is(err, core.ErrInvalidKey):
		found.status, found.Error = http.StatusBadRequest, "A key has 1 to 1,024 bytes."
		return found
	case errors.Is(err, core.ErrClosed):
		found.status, found.Error = http.StatusServiceUnavailable, "The Locker is closed."
		return found
	case err != nil:
		for _, h := range here.Held {
			here := newHeldLock(h)
			found.Here = &here
		}
		if ctx.Err() == nil {
			slog.WarnContext(ctx, "latchkey: the lock page could not look up a key", "key", key, "error", err)
		}
		found.status, found.Error = http.StatusServiceUnavailable,
			"Redis did not answer, or answered with an error. The reason is in the log of this process."
		return found
	}
	found.State, found.Form, found.Count, found.TTL = info.State, info.Form, info.Count, info.TTL.Milliseconds()
	for _, h := range info.Holders {
		found.Holders = append(found.Holders, newHolder(h, here.Held))
		found.Weight += h.Weight
	}
	if len(found.Holders) == 1 {
		found.holder = found.Holders[0]
	}
	if info.Form == "exclusive" {
		found.Holders = nil
	}
	if info.Form != "" {
		found.State = core.StateHeld // the form says how
	}
	if meant, doubled := strings.CutPrefix(key, locker.Prefix()); !info.Locked && doubled && meant != "" && meant != key {
		found.Meant = meant
	}
	found.Queue = contention.WaitingOf(info)
	return found
}

func newHolder(h core.Holder, here []core.HeldLock) holder {
	it := holder{
		Owner: h.Owner, Process: contention.ProcessOf(h.Owner), Count: h.Count, Weight: h.Weight,
		TTL: h.TTL.Milliseconds(), HeldFor: h.HeldFor.Milliseconds(),
	}
	if ago, overdue, known := contention.Renewal(h); known {
		ms := ago.Milliseconds()
		it.Renewed, it.Stopped = &ms, overdue
	}
	for _, held := range here {
		if held.Owner == h.Owner {
			here := newHeldLock(held)
			it.Here = &here
		}
	}
	return it
}

package store

import (
	"cmp"
	"strconv"
	"time"
)

// Terms are what a lock is that is held or wanted.
type Terms struct {
	Form   Form
	Fixed  bool          // nobody renews the lease
	Lease  time.Duration // in whole ms, as all times here
	Window time.Duration // from the acquisition on, for which a success keeps the lock taken; 0: none
}

// Way is how a call gets a lock. The zero Way is to take a free one.
type Way struct {
	Enter   int64    // token of the lock to enter; 0: a free one will do
	Ticket  string   // of a lock that was handed over, which is to be taken; empty: no such one
	Attempt *Attempt // for which it is taken; nil: for none
}

// formOf is the form of a lock that is got in this way, as acquire.lua has it.
func (w Way) formOf(wanted Form) Form {
	switch {
	case w.Ticket != "":
		return Resumed
	case w.Attempt != nil:
		return Attempted
	}
	return wanted
}

// Owner is whose the lock of a call will be. The zero Owner has each hold bring its own.
type Owner struct {
	Chosen string // which may have holds already; empty: none is chosen
	Begin  string // of the owner that each hold brings, before its own name
}

// Of is the owner of a hold of the call.
func (o Owner) Of(hold string) string { return cmp.Or(o.Chosen, o.Begin+hold) }

// Holding is one hold: of which lock, whose, and its own name.
type Holding struct {
	Name  Name
	Owner string // the field that counts holds
	Hold  string // marks this one, see NewHold
}

// Work is what became of the work under a lock.
type Work int8

// The greater one counts, where several are known.
const (
	Done          Work = iota // or nobody knows
	Failed                    // of the outermost hold: the lock leaves no dedup window, is parked again, and a first attempt leaves no trace
	FailedForGood             // the same, and a lock that was handed over is not parked again
)

// Form is how a lock is held. The zero Form is Exclusive.
type Form struct {
	kind    byte  // how the mode begins in Redis of a lock that is not exclusive
	permits int16 // how many may be taken at once; 0: that is not counted
	weight  int16 // how many of them an owner takes; without permits 0
}

var (
	Exclusive Form              // by one owner
	Shared    = Form{kind: 's'} // by all who share it
	Resumed   = Form{kind: 'h'} // by one owner, who took it by a ticket
	Attempted = Form{kind: 'i'} // by one owner, for an attempt at an idempotent request
)

// Permits is the form of a lock of which an owner takes one of n permits.
func Permits(n int) Form { return Form{kind: 'p', permits: int16(n), weight: 1} }

// Permits is how many there are; 0: the form has none.
func (f Form) Permits() int { return int(f.permits) }

// Weighing is the form in which an owner takes w permits.
func (f Form) Weighing(w int) Form {
	f.weight = int16(w)
	return f
}

// Weight is how many permits an owner takes; 0: the form has none.
func (f Form) Weight() int { return int(f.weight) }

// NeedsPermit says that owners take permits, of which there are so many.
func (f Form) NeedsPermit() bool { return f.kind == 'p' }

// Alone says that one owner has the lock at a time.
func (f Form) Alone() bool { return f.kind != 's' && f.kind != 'p' }

// Stays says that the lock stays in Redis when its holder ends before the work is done: for the ticket, or the request.
func (f Form) Stays() bool { return f == Resumed || f == Attempted }

// Includes says that an owner that holds a lock in this form may enter it in another.
func (f Form) Includes(other Form) bool { return f.Alone() || f.kind == other.kind }

// WaitsFor says that who wants the lock in this form waits for a holder in another, whatever room there is.
func (f Form) WaitsFor(holder Form) bool {
	return holder.Alone() || f.kind != holder.kind || f.NeedsPermit() && f.weight+holder.weight > f.permits
}

// Label is exclusive, shared or permits, for people.
func (f Form) Label() string {
	switch f.kind {
	case 's':
		return "shared"
	case 'p':
		return "permits"
	}
	return "exclusive"
}

// word is the form of a claim or an entry, as the scripts read it; see room.lua.
func (f Form) word() string {
	switch f.kind {
	case 's':
		return "s"
	case 'p':
		word := "p" + strconv.Itoa(int(f.permits))
		if f.weight > 1 {
			word += "w" + strconv.Itoa(int(f.weight))
		}
		return word
	}
	return ""
}

// Entry is a wait in the queue of a lock: by a hold, that is its owner too unless the caller has chosen one. The zero
// Entry is none.
type Entry struct {
	Hold, Owner string
	Form        Form
}

// member is the place in the sorted set.
func (p Entry) member() string {
	m := p.Hold
	if form := p.Form.word(); form != "" {
		m += "|" + form
	}
	if p.Owner != p.Hold {
		m += " " + p.Owner
	}
	return m
}

// What is simple, fast paths and merged scripts can do: an exclusive lock with nothing special but a lease, by an owner that is the hold
// itself, got in no special way. A field that is new makes a lock special, until one of these says otherwise.

// IsSimpleIn says that the terms are simple but for a form.
func (t Terms) IsSimpleIn(f Form) bool { return t == Terms{Form: f, Lease: t.Lease} }

// IsSimple says that each hold brings its own owner.
func (o Owner) IsSimple() bool { return o == Owner{} }

// IsSimple says that the call takes a free lock, or one that its owner has.
func (w Way) IsSimple() bool { return w == Way{} }

// isSimple says that the owner is the hold, which short commands leave out.
func (h Holding) isSimple() bool { return h.Owner == h.Hold }

func (c *Claim) isSimple() bool {
	return c.IsSimpleIn(Exclusive) && c.Holding.isSimple() && c.Way.IsSimple()
}

// isSimple does not look at what became of the work, which does not matter to a simple lock.
func (r *Release) isSimple() bool {
	all := *r
	all.Context = nil // which need not be comparable
	simple := Release{Holding: r.Holding, Terms: r.Terms, Token: r.Token, LastToken: r.Token, Work: r.Work, Until: r.Until}
	return all == simple && r.Token != 0 && r.IsSimpleIn(Exclusive) && r.Holding.isSimple()
}

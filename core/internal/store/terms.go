package store

import (
	"cmp"
	"time"
)

// Terms are what a lock is that is held or wanted.
type Terms struct {
	Form   Form
	Fixed  bool          // nobody renews the lease
	Lease  time.Duration // in whole ms, as all times here
	Window time.Duration // from the acquisition on, for which a success keeps the lock taken; 0: none
}

// OrdinaryIn says that the lock has nothing special but a form and a lease. A field that is new makes a lock special, until
// this says otherwise: fast paths do not know of it.
func (t Terms) OrdinaryIn(f Form) bool { return t == Terms{Form: f, Lease: t.Lease} }

// Ordinary says that the lock is exclusive, and has nothing special but a lease.
func (t Terms) Ordinary() bool { return t.OrdinaryIn(Exclusive) }

// Way is how a call gets a lock. The zero Way is a free one.
type Way struct {
	Enter   int64    // token of the lock to enter; 0: a free one will do
	Ticket  string   // of a lock that was handed over, which is to be taken; empty: no such one
	Attempt *Attempt // for which it is taken; nil: for none
}

// Free says that the call takes a free lock, or one that its owner has.
func (w Way) Free() bool { return w == Way{} }

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

// Usual says that the owner is the hold itself.
func (o Owner) Usual() bool { return o == Owner{} }

// Holding is one hold: of which lock, whose, and its own name.
type Holding struct {
	Name  Name
	Owner string // the field that counts holds
	Hold  string // marks this one, see NewHold
}

// OwnsItself says that the owner is the hold, which short commands leave out.
func (h Holding) OwnsItself() bool { return h.Owner == h.Hold }

// Work is what became of the work under a lock.
type Work int8

// The greater one counts, where several are known.
const (
	Done          Work = iota // or nobody knows
	Failed                    // of the outermost hold: the lock leaves no dedup window, is parked again, and a first attempt leaves no trace
	FailedForGood             // the same, and a lock that was handed over is not parked again
)

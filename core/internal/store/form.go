package store

import "strconv"

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

// NeedsPermit says that so many permits may be taken at once.
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

// Place is a wait in the queue of a lock: by a hold, that is its owner too unless the caller has chosen one. The zero
// Place is none.
type Place struct {
	Hold, Owner string
	Form        Form
}

// member is the place in the sorted set.
func (p Place) member() string {
	m := p.Hold
	if form := p.Form.word(); form != "" {
		m += "|" + form
	}
	if p.Owner != p.Hold {
		m += " " + p.Owner
	}
	return m
}

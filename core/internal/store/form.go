package store

import (
	"strconv"
	"strings"
)

// Form is how a lock is held, as the scripts read it.
type Form string

const (
	Exclusive Form = ""  // by one owner
	Shared    Form = "s" // by all who share it
)

// Permits is the form of a lock that n owners may hold at once.
func Permits(n int) Form { return Form("p" + strconv.Itoa(n)) }

// Permits is how many owners may hold the lock at once; 0: the form has no permits.
func (f Form) Permits() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(string(f), "p"))
	return n
}

// Includes reports whether an owner that holds a lock in this form may enter it in another.
func (f Form) Includes(other Form) bool { return f == Exclusive || f.kind() == other.kind() }

// GoesWith reports whether holders in the two forms do not wait for one another, unless it is for room.
func (f Form) GoesWith(other Form) bool {
	return f != Exclusive && f.kind() == other.kind() && other.Permits() != 1
}

// String is exclusive, shared or permits.
func (f Form) String() string { return formNames[f.kind()] }

var formNames = map[string]string{"": "exclusive", "s": "shared", "p": "permits"}

// kind is how holders that go together are marked in Redis.
func (f Form) kind() string { return string(f[:min(len(f), 1)]) }

// Place is a wait in the queue of a lock: by a hold, that is its owner too unless the caller has chosen one. The zero
// Place is none.
type Place struct {
	Hold, Owner string
	Form        Form
}

// member is the place in the sorted set.
func (p Place) member() string {
	m := p.Hold
	if p.Form != Exclusive {
		m += "|" + string(p.Form)
	}
	if p.Owner != p.Hold {
		m += " " + p.Owner
	}
	return m
}

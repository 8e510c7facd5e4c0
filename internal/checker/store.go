package checker

import (
	"fmt"
	"sync"
)

// Store is what the locks protect: a counter for each key, which holders read, add
// one to, and write back. It keeps each counter twice: once fenced, where a token
// smaller than one seen before is refused, and once as a store that knows no tokens.
type Store struct {
	mu       sync.Mutex
	counters map[string]*counter
	rejected int      // stale writes to the fenced copies
	broken   []string // what must not happen
}

type counter struct {
	seen             int64  // greatest token
	by               string // whose it is
	fenced, unfenced int
	accepted, all    int // writes
}

// Access is a request to the store, and its reply.
type Access struct {
	ID               int64
	Key, Owner       string
	Token            int64
	Write            bool
	Fenced, Unfenced int  // the values: to write, or read
	Stale            bool `json:",omitempty"` // in a reply: the fenced copy was not touched
}

// NewStore returns a store in which every counter is 0.
func NewStore() *Store { return &Store{counters: map[string]*counter{}} }

// Serve does what is asked and returns the reply. A read leaves its token, too:
// otherwise a holder from before could still write between the read and the write of
// the one after it.
func (s *Store) Serve(a Access) Access {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counters[a.Key]
	if c == nil {
		c = &counter{}
		s.counters[a.Key] = c
	}
	switch {
	case a.Token < c.seen:
		a.Stale = true
	case a.Token == c.seen && a.Owner != c.by:
		s.broken = append(s.broken, fmt.Sprintf("%s and %s have the same token %d for %s", a.Owner, c.by, a.Token, a.Key))
	default:
		c.seen, c.by = a.Token, a.Owner
	}
	if !a.Write {
		a.Fenced, a.Unfenced = c.fenced, c.unfenced
		return a
	}
	c.all++
	c.unfenced = a.Unfenced
	if a.Stale {
		s.rejected++
		return a
	}
	c.accepted++
	c.fenced = a.Fenced
	return a
}

// FaultsFound returns what was wrong since the last call: tokens that two owners
// had, and fenced counters that missed a write.
func (s *Store) FaultsFound() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.broken
	s.broken = nil
	for key, c := range s.counters {
		if c.fenced != c.accepted {
			found = append(found, fmt.Sprintf("the fenced counter of %s is %d after %d writes", key, c.fenced, c.accepted))
			c.fenced = c.accepted
		}
	}
	return found
}

// Damage returns how many stale writes were rejected, and how many writes the copies
// without tokens have lost.
func (s *Store) Damage() (rejected, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.counters {
		lost += c.all - c.unfenced
	}
	return s.rejected, lost
}

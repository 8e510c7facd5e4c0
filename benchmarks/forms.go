package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// form is how a lock is wanted. The zero value wants it alone.
type form struct {
	Shared  bool
	Permits int // unless 0
}

// size is what a holder takes of a key, and what there is for him and those who go
// with him.
func (f form) size() (part, room int64) {
	const whole = 1 << 32
	switch {
	case f.Shared:
		return 1, whole - 1
	case f.Permits > 0:
		return 1, int64(f.Permits)
	}
	return whole, whole
}

// spot is what a call locks, and how much of each key is taken at the moment.
type spot struct {
	keys  []string
	inUse []*atomic.Int64
	form  form
}

// Lockers of libraries that have such a form.
type (
	allLocker interface {
		lockAll(ctx context.Context, keys []string) (held, error)
	}
	sharedLocker interface {
		lockShared(ctx context.Context, key string) (held, error)
	}
	permitter interface {
		takePermit(ctx context.Context, key string, n int) (held, error)
	}
)

func (s spot) lock(ctx context.Context, l locker) (held, error) {
	switch {
	case len(s.keys) > 1:
		return l.(allLocker).lockAll(ctx, s.keys)
	case s.form.Shared:
		return l.(sharedLocker).lockShared(ctx, s.keys[0])
	case s.form.Permits > 0:
		return l.(permitter).takePermit(ctx, s.keys[0], s.form.Permits)
	}
	return l.lock(ctx, s.keys[0])
}

// wants is what the goroutines of a row lock: the zero value is one key that all dispute.
type wants struct {
	Keys, Of int // so many keys of so many that all dispute, at random and in any order
	Readers  int // percent of the calls that share
	Permits  int
}

// spots are what one of the goroutines locks in turn. They are the same in every run.
func (w wants) spots(a *arena, goroutine int) []spot {
	r := rand.New(rand.NewPCG(1, uint64(goroutine)))
	n := 1
	if w.Of > 1 || w.Readers > 0 {
		n = 128
	}
	spots := make([]spot, n) // no more than needed: a hot key's cycle is short
	for i := range spots {
		s := &spots[i]
		s.form = form{Shared: r.IntN(100) < w.Readers, Permits: w.Permits}
		for _, n := range r.Perm(max(w.Of, 1))[:max(w.Keys, 1)] {
			s.keys = append(s.keys, disputed(n))
			s.inUse = append(s.inUse, &a.inUse[n])
		}
	}
	return spots
}

// disputed is the name of a key that all dispute.
func disputed(n int) string { return fmt.Sprint("order:", 42+n) }

// formRows are those of the forms of a lock, each with the one peer that has it.
func formRows() []row {
	return []row{
		severalDisjoint(2), severalDisjoint(8), severalCrossing(2), severalCrossing(8), permits(3), shared(90),
	}
}

// severalDisjoint is the row of locks of several keys that nobody disputes.
func severalDisjoint(keys int) row {
	r := uncontended(16)
	r.name = fmt.Sprintf("keys-%d-disjoint", keys)
	r.title = fmt.Sprintf("%d keys at once, uncontended, 16 goroutines", keys)
	r.measure = func(ctx context.Context, b *bench, lib library) (figures, error) {
		return b.cycles(ctx, lib, b.server.Addr(), keysOfTheirOwn(16, keys), new(arena))
	}
	r = r.against(redislockName)
	r.columns = append(r.columns, clientCPU, allocsPer)
	return r
}

// severalCrossing is the row of calls that want keys of which others want some, too.
func severalCrossing(keys int) row {
	r := underLoad(wants{Keys: keys, Of: 8 * keys})
	r.name = fmt.Sprintf("keys-%d-crossing", keys)
	r.title = fmt.Sprintf("%d of %d keys at once, at random, 4 processes of 16 goroutines, 1 ms inside", keys, 8*keys)
	return r.against(redislockName)
}

func permits(n int) row {
	r := underLoad(wants{Permits: n})
	r.name = fmt.Sprintf("permits-%d", n)
	r.title = fmt.Sprintf("One key with %d permits, 4 processes of 16 goroutines, 1 ms inside", n)
	return r.against(asynqRateName)
}

func shared(readers int) row {
	r := underLoad(wants{Readers: readers})
	r.name = fmt.Sprintf("shared-%d", readers)
	r.title = fmt.Sprintf("One key, %d %% of the calls share it, 4 processes of 16 goroutines, 1 ms inside", readers)
	return r.against(redissonName)
}

func underLoad(w wants) row { return contention(4, 16, section{Sleep: time.Millisecond}, w) }

// against makes it a row of a form, which few libraries have.
func (r row) against(peer string) row {
	r.libraries, r.base = []string{latchkeyName, peer}, peer
	r.columns = []figure{cyclesPerSecond, commandsPer, redisCPU, fairness, neverServed, waitP50, waitP99, waitMax}
	return r
}

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/checker"
)

// plan is what an actor is going to do with a lock.
type plan struct {
	Key     string
	Lease   time.Duration
	Fixed   bool
	Wait    time.Duration // 0: no wait; negative: until it is cancelled
	Cancel  time.Duration // 0: nobody cancels the wait
	KeepFor time.Duration
	MaxHold time.Duration
	Owner   string // shared with others
	Form    checker.Form
	Share   bool // it is downgraded, to be read by others as well
	Upgrade bool // it wants to have alone what it has together with others
	Depth   int  // of re-entries
	Length  time.Duration
	Abort   bool
	Refresh bool
	Do      bool // by way of Do
	Later   bool // Do does not wait for its release
	// Careless holders never look at their context.
	Careless bool
	Leave    bool // its caller goes away while it holds the lock
	Known    bool // the holder asks for its owner
	Handover bool // it hands the lock over to a job
	Beside   bool // somebody enters the lock while it is unlocked
}

const (
	hotKeys  = 2
	coldKeys = 8
)

// keys are what the processes contend for: hot ones, cold ones, one whose holders share
// owners, one that is read and written, one with permits, and for each process one of its own.
var keys = []string{"hot 0", "hot 1", "cold 0", "cold 1", "cold 2", "cold 3", "cold 4", "cold 5", "cold 6", "cold 7", owned, readAndWritten, permitted,
	own[0], own[1], own[2], own[3]}

var own = []string{"own 0", "own 1", "own 2", "own 3"}

const (
	owned          = "owned"
	readAndWritten = "read and written"
	permitted      = "permitted"
	fewestPermits  = 2
	mostPermits    = 3
)

// together gives the plan a key whose holders go together, and a form.
func (p *plan) together(random *rand.Rand) {
	switch n := random.IntN(100); {
	case n < 40:
		p.Key, p.Form.Shared = readAndWritten, true
	case n < 55:
		p.Key, p.Share = readAndWritten, random.IntN(2) == 0
	case n < 95:
		p.Key, p.Form.Permits = permitted, fewestPermits+random.IntN(mostPermits-fewestPermits+1)
		if random.IntN(2) == 0 {
			p.Form.Weight = 1 + random.IntN(p.Form.Permits)
		}
	default:
		p.Key = permitted
	}
	if !p.alone() {
		p.KeepFor = 0 // they do not go together
		p.Upgrade = random.IntN(10) == 0
	}
}

func (p *plan) alone() bool { return p.Form == checker.Form{} }

// plan makes one up. In calm times it is such that every key has to be taken by
// somebody all the time.
func (w *world) plan(random *rand.Rand, calm bool) plan {
	chance := func(percent int) bool { return random.IntN(100) < percent }
	l := w.lease
	p := plan{Key: keys[random.IntN(hotKeys)], Lease: l, Careless: chance(30), Wait: between(random, 2*l, 6*l) + 5*time.Second}
	if chance(40) {
		p.Key = keys[hotKeys+random.IntN(coldKeys)]
	}
	p.Length = between(random, 0, l/30)
	if chance(30) {
		p.Depth = 1 + random.IntN(3)
	}
	if chance(10) {
		p.KeepFor = between(random, time.Millisecond, l/3)
	}
	p.Abort = chance(20)
	p.Known = chance(20)
	p.Do = chance(20)
	p.Later = chance(50)
	p.Beside = chance(20)
	together := chance(30)
	if together {
		p.together(random)
	}
	if p.Share {
		p.Depth, p.KeepFor, p.Beside = 0, 0, false
	}
	if calm {
		return p
	}
	switch n := random.IntN(100); {
	case n < 20:
		p.Wait = 0
	case n < 70:
		p.Wait = between(random, l/50, 2*l)
	case n < 80:
		p.Wait, p.Cancel = -1, between(random, time.Millisecond, l)
	case n < 90:
		p.Wait = -1
	}
	switch n := random.IntN(100); {
	case n < 8:
		p.Length = between(random, l/2, 3*l)
	case n < 25:
		p.Length = between(random, 0, l/2)
	}
	switch n := random.IntN(100); {
	case n < 15:
		p.Fixed = true
	case n < 25:
		p.MaxHold = between(random, time.Millisecond, 2*l)
	}
	if chance(20) {
		p.Lease = between(random, l/10, l)
	}
	if p.alone() && !p.Share && chance(15) {
		p.KeepFor = between(random, time.Millisecond, 2*l)
	}
	if p.Form.Shared && chance(15) || !together && chance(12) {
		p.Beside = false
		p.Owner, p.Do, p.Fixed, p.Lease = "owner "+string('a'+rune(random.IntN(2))), false, false, l
		p.KeepFor = 0 // they do not go together
		if !together {
			p.Key = owned
		}
	}
	p.Lease = max(p.Lease.Truncate(time.Millisecond), 20*time.Millisecond)
	p.Handover = p.alone() && !p.Share && p.Owner == "" && p.KeepFor == 0 && !p.Do && chance(20)
	p.Refresh = chance(10)
	p.Leave = chance(5)
	return p
}

// options are those of the call.
func (p plan) options() []core.Option {
	options := []core.Option{core.Lease(p.Lease)}
	if p.Fixed {
		options[0] = core.FixedLease(p.Lease)
	}
	if p.Wait >= 0 {
		options = append(options, core.Wait(p.Wait))
	}
	if p.KeepFor > 0 {
		options = append(options, core.KeepFor(p.KeepFor))
	}
	if p.MaxHold > 0 {
		options = append(options, core.MaxHold(p.MaxHold))
	}
	if p.Owner != "" {
		options = append(options, core.Owner(p.Owner))
	}
	if p.Do && p.Later {
		options = append(options, core.BackgroundRelease())
	}
	return append(options, p.form()...)
}

func (p plan) form() []core.Option {
	switch {
	case p.Form.Shared:
		return []core.Option{core.Shared()}
	case p.Form.Permits > 0:
		return []core.Option{core.Permits(p.Form.Permits), core.Weight(p.Form.Taken())}
	}
	return nil
}

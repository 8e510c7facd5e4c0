package store

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Fields of a lock's hash, see lock.lua.
const (
	holderField = ownFields + "holder:"
	answerField = ownFields + "answer"
	byField     = ownFields + "by"
	weightField = ownFields + "weight:"
)

// ownMode is any mode of ours, as read.lua has it: not f, which inspect.lua has for a string, nor that of Redisson's
// read-write locks.
var ownMode = regexp.MustCompile(`^(x\d.*|[sphiw]\d*( [0-9a-fA-F]+ ?\d*)?)$`)

// Status is what a lock is at one moment.
type Status int8

const (
	StatusFree    Status = iota
	StatusHeld           // by one, alone
	StatusShared         // by some who share it
	StatusPermits        // some of these are taken
	StatusDedupWindow
	StatusParked         // handed over, and not resumed
	StatusAnswered       // it has the answer to an idempotent request
	StatusOutcomeUnknown // nobody knows what the last attempt at such a request has done
	StatusForeign        // its mode is none of ours
)

// Inspection is a lock at one moment.
type Inspection struct {
	Status  Status
	Owner   string        // empty when nobody has it, or several
	Holds   int           // of all holders
	TTL     time.Duration // negative: it has no end
	Form    Form
	Attempt int      // at an idempotent request: the one under way, or the last one
	By      string   // the owner who has handed it over
	Ticket  string   // the digest of that for which it was handed over
	Holders []Holder // by their owners
	Queue   []Queued // by their arrival
}

// Holder is who has the lock, or one of several.
type Holder struct {
	Owner   string
	Count   int // of its holds
	Weight  int // of its permits; 0: the form has none
	TTL     time.Duration
	HeldFor time.Duration // by the clock of Redis; 0: it is not known
	Granted bool          // by a release, which its process has not confirmed
	Lease   time.Duration // that its process renews; 0: it does not, or that is not known
}

// Queued is an entry of the queue. It does not tell the hold, by which the lock could be granted.
type Queued struct {
	Process string // as owners of holds begin
	Owner   string // that the caller has chosen; empty: none
	Form    Form
	Waits   time.Duration // by the clock of Redis
	Polls   bool          // its process is not subscribed
}

// Inspect reads the state of a lock; of a quorum, the majority's view. It blocks for Timeout at most, and returns early
// when ctx ends; the error is a [*conn.Failure]. sure is for a holder, who needs the answer of a server that takes writes: one
// that was demoted may know nothing of his lock.
func (s *Store) Inspect(ctx context.Context, n Name, sure bool) (Inspection, error) {
	c := &conn.Command{Script: s.scripts.inspect, Keys: 2, Words: []any{n.Lock(), n.queue()}, Resends: new(conn.Resends)}
	if sure {
		c.Words = append(c.Words, sure)
	}
	return question[Inspection]{c, s.config.Timeout, decodeInspection, decideInspect, nil}.ask(ctx, s)
}

func decodeInspection(from conn.Reply) (Inspection, error) {
	r := reply{value: from.Value}
	said, ttl, now, fields, queue := r.verdict(), r.ttl(), r.time(), r.fields(), at[[]any](&r, 5)
	if said != saidState || len(fields)%2 != 0 || len(queue)%2 != 0 {
		r.foreign()
	}
	l := Inspection{Queue: readQueue(queue, now)}
	if r.err != nil || ttl == -2*time.Millisecond {
		return l, r.err
	}
	read := readHash(fields, ttl, now)
	switch l.Status = read.status(); l.Status {
	case StatusFree:
		return l, nil
	case StatusShared, StatusPermits:
		l.Form = Form{kind: read.kind}
	}
	switch read.kind {
	case 'h':
		l.Ticket, l.By = read.word, read.by
	case 'i':
		l.Attempt, _ = strconv.Atoi(read.number)
	}
	l.TTL, l.Holders = ttl, read.holders
	for _, h := range l.Holders {
		l.Holds += h.Count
	}
	if len(l.Holders) == 1 {
		l.Owner = l.Holders[0].Owner
	}
	return l, nil
}

// hash is what the fields of a lock say, see lock.lua.
type hash struct {
	kind         byte // of the mode; the number and the first word follow it
	number, word string
	isForeign    bool // the mode is none of ours
	isAnswered   bool
	by           string
	holders      []Holder
}

// readHash reads the fields, and their values, of a lock that lasts for ttl.
func readHash(fields []any, ttl, now time.Duration) hash {
	l := hash{kind: 'x'}
	further := map[string]int{} // permits, beside the first
	for i := 0; i < len(fields); i += 2 {
		field, _ := fields[i].(string)
		text, _ := fields[i+1].(string)
		owner, isHolder := strings.CutPrefix(field, holderField)
		switch {
		case isHolder:
			if h, ok := readHolder(owner, text, now); ok {
				l.holders = append(l.holders, h)
			}
		case strings.HasPrefix(field, weightField):
			_, owner, _ = strings.Cut(strings.TrimPrefix(field, weightField), ":")
			further[owner]++
		case field == modeField && text != "":
			l.kind, l.isForeign = text[0], !ownMode.MatchString(text)
			l.number, l.word, _ = strings.Cut(strings.TrimSuffix(text[1:], "+"), " ")
			l.word, _, _ = strings.Cut(l.word, " ")
		case field == byField:
			l.by = text
		case field == answerField:
			l.isAnswered = true
		case !IsOwnField(field):
			count, _ := strconv.Atoi(text)
			l.holders = append(l.holders, Holder{Owner: field, Count: count, TTL: ttl})
		}
	}
	for i := range l.holders {
		switch h := &l.holders[i]; l.kind {
		case 'p':
			h.Weight = 1 + further[h.Owner]
		case 'x':
			h.began(l.number, cmp.Or(l.word, "30000"), now)
		}
	}
	slices.SortFunc(l.holders, func(a, b Holder) int { return cmp.Compare(a.Owner, b.Owner) })
	return l
}

// status is what such a lock is.
func (l *hash) status() Status {
	isHeld := l.holders != nil
	switch {
	case !isHeld && (l.kind == 's' || l.kind == 'p'):
		return StatusFree
	case l.isForeign:
		return StatusForeign
	case !isHeld && l.kind == 'h':
		return StatusParked
	case l.isAnswered:
		return StatusAnswered
	case !isHeld && l.kind == 'i':
		return StatusOutcomeUnknown
	case !isHeld:
		return StatusDedupWindow
	case l.kind == 'p':
		return StatusPermits
	case l.kind == 's':
		return StatusShared
	}
	return StatusHeld
}

// began reads what a holder has, but for its end, see lock.lua. A token is a time by the clock of Redis.
func (h *Holder) began(token, lease string, now time.Duration) {
	if since, err := strconv.ParseInt(token, 10, 64); err == nil {
		ms, _ := strconv.Atoi(lease)
		h.HeldFor = max(now-time.Duration(since)*time.Microsecond, 0)
		h.Lease, h.Granted = time.Duration(max(ms, 0))*time.Millisecond, lease == "0"
	}
}

// readQueue reads the entries of a queue and their scores, see queue.lua.
func readQueue(members []any, now time.Duration) (waiting []Queued) {
	const tombstone = 5e16
	for i := 0; i+1 < len(members); i += 2 {
		member, _ := members[i].(string)
		text, _ := members[i+1].(string)
		score, err := strconv.ParseFloat(text, 64)
		if err != nil || score >= tombstone {
			continue
		}
		place, owner, _ := strings.Cut(member, " ")
		hold, form, _ := strings.Cut(place, "|")
		q := Queued{Process: hold[:strings.LastIndexByte(hold, ':')+1], Owner: strings.TrimSuffix(owner, hold)}
		if form != "" {
			q.Form = Form{kind: form[0]}
		}
		arrival := math.Floor(score)
		q.Waits, q.Polls = max(now-time.Duration(arrival)*time.Microsecond, 0), score > arrival
		waiting = append(waiting, q)
	}
	return waiting
}

// readHolder reads what a holder has, see lock.lua. One that has ended is none.
func readHolder(owner, text string, now time.Duration) (h Holder, ok bool) {
	words := strings.Fields(text)
	if len(words) < 4 {
		return h, false
	}
	ends, _ := strconv.ParseInt(words[0], 10, 64)
	h = Holder{Owner: owner, Count: len(words) - 3, TTL: time.Duration(ends)*time.Microsecond - now}
	h.began(words[2], words[1], now)
	if len(words[3]) == 1 {
		h.Count-- // it stands for the outcome of the first
	}
	return h, h.TTL > 0
}

// decideInspect: what a majority says of the owner, with the shortest ttl and the most holds among them; nobody has the
// lock when all have answered and differ.
func decideInspect(b *ballot[Inspection]) (state Inspection, decided bool, err error) {
	same, decided, err := b.agreed(func(a, b Inspection) bool {
		return (a.Status == StatusFree) == (b.Status == StatusFree) && a.Owner == b.Owner
	})
	switch {
	case decided && err == nil:
		state = slices.MinFunc(same, func(a, b Inspection) int { return cmp.Compare(a.TTL, b.TTL) })
		for _, b := range same { // of two majorities one member is in both: it has the latest re-entry
			state.Holds = max(state.Holds, b.Holds)
		}
		if len(state.Holders) == 1 {
			state.Holders = []Holder{state.Holders[0]}
			state.Holders[0].Count = state.Holds
		}
	case decided && len(b.failures()) == 0:
		err = nil
	}
	return state, decided, err
}

// Force frees a lock or ends its dedup window, and reports whether there was anything to free: of whoever holds it when
// owner is nil, else if that owner does; an empty one stands for a dedup window. It blocks for Timeout at most, and
// returns early when ctx ends; after an error, a [*conn.Failure], it may have been done.
func (s *Store) Force(ctx context.Context, n Name, owner *string) (bool, error) {
	words := []any{n.Lock(), n.clock()}
	if owner != nil {
		if IsOwnField(*owner) {
			return false, nil // a field of ours is no owner
		}
		words = append(words, *owner)
	}
	c := &conn.Command{Script: s.scripts.force, Keys: 2, Words: words}
	return question[bool]{c, s.config.Timeout, yes, decideForce, nil}.ask(ctx, s)
}

// decideForce: done when a majority has answered; freed if one of them was.
func decideForce(b *ballot[bool]) (freed, decided bool, err error) {
	answers, decided, err := b.agreed(func(_, _ bool) bool { return true })
	return slices.Contains(answers, true), decided, err
}

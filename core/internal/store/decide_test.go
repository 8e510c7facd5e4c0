//go:build go1.25

package store

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

var errDown = conn.Failed(errors.New("down"))

func down[T any]() vote[T]         { return vote[T]{err: errDown} }
func says[T any](answer T) vote[T] { return vote[T]{answer: answer} }

func votes[T any](votes ...vote[T]) *ballot[T] {
	b := &ballot[T]{members: 3}
	for i, v := range votes {
		v.member = i
		b.votes = append(b.votes, v)
	}
	return b
}

// grant is one of a request that was sent so long after the start as its token says.
func grant(token int64, ttl time.Duration) vote[Acquired] {
	return says(Acquired{Token: token, TTL: ttl, Outermost: true, Sent: start.Add(time.Duration(token))})
}

func reentry(token int64, ttl time.Duration) vote[Acquired] {
	return says(Acquired{Token: token, TTL: ttl})
}

func refused(err error) vote[Acquired] { return vote[Acquired]{err: err} }

var start = time.Unix(1e9, 0)

// busy is a refusal until a time after the start; 0: without an end.
func busy(until time.Duration) vote[Acquired] {
	if until == 0 {
		return refused(&Busy{})
	}
	return refused(&Busy{Until: start.Add(until), Why: HolderIsFixed})
}

const undecided = "undecided"

func TestDecideAcquire(t *testing.T) {
	gone, withdrawn := refused(ErrGone), refused(errGivenUp)
	is := func(v vote[Acquired]) Acquired { return v.answer }
	since := func(sent int64, v vote[Acquired]) Acquired {
		v.answer.Sent = start.Add(time.Duration(sent))
		return v.answer
	}
	until := func(d time.Duration, split bool) error {
		b := &Busy{Split: split}
		if d != 0 {
			b.Until, b.Why = start.Add(d), HolderIsFixed
		}
		return b
	}
	for name, tc := range map[string]struct {
		votes     *ballot[Acquired]
		impatient bool
		want      Acquired
		refused   error
		err       string
	}{
		"nobody":                                 {votes: votes[Acquired](), err: undecided},
		"one grant":                              {votes: votes(grant(1, 9)), err: undecided},
		"greatest token, shortest ttl":           {votes: votes(grant(1, 8), grant(2, 9)), want: since(1, grant(2, 8))},
		"as numbers":                             {votes: votes(grant(10, 8), grant(9, 9)), want: since(9, grant(10, 8))},
		"a grant beside a failure":               {votes: votes(down[Acquired](), grant(1, 9)), err: undecided},
		"a majority with one down":               {votes: votes(down[Acquired](), grant(1, 9), grant(1, 8)), want: is(grant(1, 8))},
		"one busy":                               {votes: votes(busy(1)), err: undecided},
		"two busy: the second is free first":     {votes: votes(busy(7), busy(5)), refused: until(7, false)},
		"without an end is last":                 {votes: votes(busy(0), busy(5), busy(3)), refused: until(5, false)},
		"without an end":                         {votes: votes(busy(0), busy(5)), refused: until(0, false)},
		"a vote each, the third may decide":      {votes: votes(grant(1, 9), busy(5)), err: undecided},
		"a vote each, impatient":                 {votes: votes(grant(1, 9), busy(5)), impatient: true, refused: until(5, true)},
		"one answer, impatient":                  {votes: votes(busy(5)), impatient: true, err: undecided},
		"one grant of three":                     {votes: votes(busy(5), grant(1, 9), busy(3)), refused: until(3, true)},
		"impatient without contenders":           {votes: votes(grant(1, 9), down[Acquired]()), impatient: true, err: undecided},
		"held or unreachable":                    {votes: votes(busy(5), down[Acquired]()), err: undecided},
		"held":                                   {votes: votes(busy(5), down[Acquired](), busy(6)), refused: until(6, false)},
		"unreachable at once":                    {votes: votes(down[Acquired](), down[Acquired]()), err: "2 of 3 members failed: down"},
		"unreachable, although one is busy":      {votes: votes(busy(5), down[Acquired](), down[Acquired]()), err: "2 of 3 members failed"},
		"gone":                                   {votes: votes(gone, gone), refused: ErrGone},
		"gone from one":                          {votes: votes(gone, reentry(1, 9)), err: undecided},
		"gone from one, entered at two":          {votes: votes(gone, reentry(1, 9), reentry(1, 8)), want: is(reentry(1, 8))},
		"gone from one, taken at another":        {votes: votes(gone, busy(5), down[Acquired]()), refused: until(5, false)},
		"gone from one, impatient":               {votes: votes(gone, grant(1, 9)), impatient: true, err: undecided},
		"withdrawn is not gone, as far as known": {votes: votes(gone, withdrawn, reentry(1, 9)), err: "the members do not agree"},
	} {
		got, decided, err := decideAcquire(tc.votes, tc.impatient)
		if tc.refused != nil {
			if !decided || !reflect.DeepEqual(err, tc.refused) {
				t.Errorf("%s: decided %v, %+v, want %+v", name, decided, err, tc.refused)
			}
			continue
		}
		wantDecision(t, name, got, decided, err, tc.want, tc.err)
	}
}

func TestTokenReachesNoMajority(t *testing.T) {
	yes, no, down := says(true), says(false), down[bool]()
	for name, tc := range map[string]struct {
		votes []vote[bool]
		split bool
		err   string
	}{
		"two answer":         {votes: []vote[bool]{yes, down, no}, split: true},
		"one is refused":     {votes: []vote[bool]{yes, down, {err: &Busy{}}}, split: true},
		"one answers":        {votes: []vote[bool]{yes, down, down}, err: "the fencing token reached no majority: 2 of 3 members failed"},
		"a late one has it":  {votes: []vote[bool]{yes, down, yes}},
		"none of its voters": {votes: []vote[bool]{no, no, yes}, split: true},
	} {
		e := &election{Store: &Store{servers: make([]*conn.Server, 3)}, ctx: context.Background(), written: make(chan vote[bool], 3)}
		for _, v := range tc.votes {
			e.written <- v
		}
		err := e.confirm()
		if tc.split != reflect.DeepEqual(err, error(&Busy{Split: true})) || !tc.split && (err == nil) != (tc.err == "") {
			t.Errorf("%s: %v", name, err)
		}
		if tc.err != "" && (!strings.Contains(err.Error(), tc.err) || conn.OutcomeOf(err) != conn.Unknown) {
			t.Errorf("%s: error %v, want %q", name, err, tc.err)
		}
	}
}

func TestDecideYes(t *testing.T) {
	yes, no, down := says(true), says(false), down[bool]()
	for name, tc := range map[string]struct {
		votes        *ballot[bool]
		yes, freed   bool
		err, errFree string
	}{
		"one":          {votes: votes(yes), err: undecided, errFree: undecided},
		"yes":          {votes: votes(yes, yes), yes: true, freed: true},
		"no":           {votes: votes(no, no)},
		"one each":     {votes: votes(yes, no), err: undecided, freed: true},
		"no first":     {votes: votes(no, yes), err: undecided, freed: true},
		"all differ":   {votes: votes(yes, no, down), err: "1 of 3 members failed", freed: true},
		"late yes":     {votes: votes(no, down, no)},
		"one survivor": {votes: votes(yes, down, down), err: "2 of 3 members failed", errFree: "2 of 3 members failed"},
	} {
		got, decided, err := decideYes(tc.votes)
		wantDecision(t, name, got, decided, err, tc.yes, tc.err)
		got, decided, err = decideForce(tc.votes)
		wantDecision(t, name+", force", got, decided, err, tc.freed, tc.errFree)
	}
}

func TestDecideRelease(t *testing.T) {
	ended, none, down := says(Released{Found: true}), says(Released{}), down[Released]()
	for name, tc := range map[string]struct {
		votes *ballot[Released]
		want  Released
		err   string
	}{
		"ended":               {votes: votes(down, ended, ended), want: Released{Found: true}},
		"ended at one":        {votes: votes(ended, down), err: undecided},
		"none":                {votes: votes(none, ended, none)},
		"ended at one, alone": {votes: votes(ended, none, down), err: "1 of 3 members failed"},
	} {
		got, decided, err := decideRelease(tc.votes)
		wantDecision(t, name, got, decided, err, tc.want, tc.err)
	}
}

func TestDecideInspect(t *testing.T) {
	by := func(owner string, holds int, ttl time.Duration) vote[Inspection] {
		state := Inspection{Status: StatusDedupWindow, Owner: owner, Holds: holds, TTL: ttl}
		if owner != "" {
			state.Status = StatusHeld
			state.Holders = []Holder{{Owner: owner, Count: holds, TTL: ttl}}
		}
		return says(state)
	}
	free, down := says(Inspection{}), down[Inspection]()
	for name, tc := range map[string]struct {
		votes *ballot[Inspection]
		want  Inspection
		err   string
	}{
		"one":                      {votes: votes(by("a", 1, 9)), err: undecided},
		"shortest ttl, most holds": {votes: votes(by("a", 2, 9), by("a", 1, 8)), want: Inspection{Status: StatusHeld, Owner: "a", Holds: 2, TTL: 8, Holders: []Holder{{Owner: "a", Count: 2, TTL: 8}}}},
		"the same the other way":   {votes: votes(by("a", 1, 8), by("a", 2, 9)), want: Inspection{Status: StatusHeld, Owner: "a", Holds: 2, TTL: 8, Holders: []Holder{{Owner: "a", Count: 2, TTL: 8}}}},
		"a window":                 {votes: votes(by("", 0, 9), by("", 0, 8)), want: Inspection{Status: StatusDedupWindow, TTL: 8}},
		"free and in a window":     {votes: votes(free, by("", 0, 8)), err: undecided},
		"free":                     {votes: votes(free, free)},
		"free at two of three":     {votes: votes(free, by("a", 1, 9), free)},
		"three owners":             {votes: votes(by("a", 1, 9), by("b", 1, 9), by("c", 1, 9))},
		"unknown":                  {votes: votes(by("a", 1, 9), free, down), err: "1 of 3 members failed"},
		"free as far as they say":  {votes: votes(free, down, free)},
		"unreachable":              {votes: votes(free, down, down), err: "2 of 3 members failed"},
	} {
		got, decided, err := decideInspect(tc.votes)
		wantDecision(t, name, got, decided, err, tc.want, tc.err)
	}
}

func wantDecision[T any](t *testing.T, name string, got T, decided bool, err error, want T, wantErr string) {
	t.Helper()
	if wantErr == undecided {
		if decided || err != nil {
			t.Errorf("%s: decided for %+v, %v", name, got, err)
		}
		return
	}
	var f *conn.Failure
	switch {
	case !decided:
		t.Errorf("%s: undecided", name)
	case wantErr == "" && err == nil:
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	case wantErr == "", err == nil, !strings.Contains(err.Error(), wantErr):
		t.Errorf("%s: error %v, want %q", name, err, wantErr)
	case !errors.As(err, &f) || f.Outcome != conn.Unknown:
		t.Errorf("%s: error %#v, want a Failure", name, err)
	}
}

// paper is an election whose members are not there.
func paper(usual time.Duration, votes ...vote[Acquired]) *election {
	e := &election{Store: &Store{servers: make([]*conn.Server, 3)}, granted: make(chan vote[Acquired], 6)}
	e.usual.Store(int64(usual))
	for i, v := range votes {
		v.member = i
		e.granted <- v
	}
	return e
}

// Who has one vote and one refusal waits for the third no longer than usual.
func TestContendersDoNotWaitForADeadMember(t *testing.T) {
	for usual, want := range map[time.Duration]time.Duration{0: 5 * time.Millisecond, 10 * time.Millisecond: 30 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			e := paper(usual, grant(1, 9), busy(5))
			began := time.Now()
			_, err := e.count()
			if b, ok := err.(*Busy); !ok || !b.Split {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("waited for %v, want %v", took, want)
			}
		})
	}
}

func TestMemberThatIsAskedAgainMayDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := paper(0, busy(5), grant(3, 9))
		time.AfterFunc(time.Millisecond, func() { e.granted <- grant(4, 9) })
		if g, err := e.count(); err != nil || g.Token != 4 {
			t.Errorf("%+v, %v", g, err)
		}
	})
}

// The slowest member decides what is usual, and what is known of one that is away fades.
func TestUsualTime(t *testing.T) {
	s := new(Store)
	for range 20 {
		for _, d := range []time.Duration{1, 2, 80} {
			s.took(d * time.Millisecond)
		}
	}
	if usual := time.Duration(s.usual.Load()); usual < 80*time.Millisecond/graceFactor || usual > 80*time.Millisecond {
		t.Errorf("%v with one that takes 80ms", usual)
	}
	for range 40 {
		s.took(time.Millisecond)
		s.took(2 * time.Millisecond)
	}
	if usual := time.Duration(s.usual.Load()); usual > 3*time.Millisecond {
		t.Errorf("%v without it", usual)
	}
}

func TestQuorumReportsARenewalOnce(t *testing.T) {
	for _, sent := range [][]time.Duration{{2, 1}, {1, 2}} {
		var o outcome
		v := &renewalVotes{ballot: *votes[bool](), to: &o}
		v.Renewed(true, nil, start.Add(sent[0]))
		if o != (outcome{}) {
			t.Errorf("one vote: %+v", o)
		}
		v.Renewed(true, nil, start.Add(sent[1]))
		if o != (outcome{held: true, sent: start.Add(1)}) {
			t.Errorf("sent at %v: %+v; want held since the first was sent", sent, o)
		}
		o = outcome{}
		v.Renewed(false, nil, start)
		if o != (outcome{}) {
			t.Errorf("a late vote: %+v", o)
		}
	}
}

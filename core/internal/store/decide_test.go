package store

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

var errDown = errors.New("down")

func down[T any]() vote[T]         { return vote[T]{err: errDown} }
func says[T any](answer T) vote[T] { return vote[T]{answer: answer} }

func votes[T any](votes ...vote[T]) *tally[T] {
	t := &tally[T]{total: 3, majority: 2}
	for i, v := range votes {
		v.member = i
		t.votes = append(t.votes, v)
	}
	return t
}

func grant(token int64, ttl time.Duration) vote[answer] {
	return says(answer{grant: Grant{Token: token, TTL: ttl, Outermost: true}})
}

func reentry(token int64, ttl time.Duration) vote[answer] {
	return says(answer{grant: Grant{Token: token, TTL: ttl}})
}

var start = time.Unix(1e9, 0)

// busy is a refusal until a time after the start; 0: without an end.
func busy(until time.Duration) vote[answer] {
	if until == 0 {
		return says(answer{refused: &Busy{}})
	}
	return says(answer{refused: &Busy{Until: start.Add(until), Exact: true}})
}

const undecided = "undecided"

func TestDecideAcquire(t *testing.T) {
	gone, withdrawn := says(answer{refused: ErrGone}), says(answer{refused: errWithdrawn})
	is := func(v vote[answer]) answer { return v.answer }
	until := func(d time.Duration, split bool) answer {
		b := &Busy{Split: split}
		if d != 0 {
			b.Until, b.Exact = start.Add(d), true
		}
		return answer{refused: b}
	}
	for name, tc := range map[string]struct {
		votes     *tally[answer]
		impatient bool
		want      answer
		err       string
	}{
		"nobody":                                 {votes: votes[answer](), err: undecided},
		"one grant":                              {votes: votes(grant(1, 9)), err: undecided},
		"greatest token, shortest ttl":           {votes: votes(grant(1, 8), grant(2, 9)), want: is(grant(2, 8))},
		"as numbers":                             {votes: votes(grant(10, 8), grant(9, 9)), want: is(grant(10, 8))},
		"a grant beside a failure":               {votes: votes(down[answer](), grant(1, 9)), err: undecided},
		"a majority with one down":               {votes: votes(down[answer](), grant(1, 9), grant(1, 8)), want: is(grant(1, 8))},
		"one busy":                               {votes: votes(busy(1)), err: undecided},
		"two busy: the second is free first":     {votes: votes(busy(7), busy(5)), want: until(7, false)},
		"without an end is last":                 {votes: votes(busy(0), busy(5), busy(3)), want: until(5, false)},
		"without an end":                         {votes: votes(busy(0), busy(5)), want: until(0, false)},
		"a vote each, the third may decide":      {votes: votes(grant(1, 9), busy(5)), err: undecided},
		"a vote each, impatient":                 {votes: votes(grant(1, 9), busy(5)), impatient: true, want: until(5, true)},
		"one answer, impatient":                  {votes: votes(busy(5)), impatient: true, err: undecided},
		"one grant of three":                     {votes: votes(busy(5), grant(1, 9), busy(3)), want: until(3, true)},
		"impatient without contenders":           {votes: votes(grant(1, 9), down[answer]()), impatient: true, err: undecided},
		"held or unreachable":                    {votes: votes(busy(5), down[answer]()), err: undecided},
		"held":                                   {votes: votes(busy(5), down[answer](), busy(6)), want: until(6, false)},
		"unreachable at once":                    {votes: votes(down[answer](), down[answer]()), err: "2 of 3 members failed: down"},
		"unreachable, although one is busy":      {votes: votes(busy(5), down[answer](), down[answer]()), err: "2 of 3 members failed"},
		"gone":                                   {votes: votes(gone, gone), want: answer{refused: ErrGone}},
		"gone from one":                          {votes: votes(gone, reentry(1, 9)), err: undecided},
		"gone from one, entered at two":          {votes: votes(gone, reentry(1, 9), reentry(1, 8)), want: is(reentry(1, 8))},
		"gone from one, taken at another":        {votes: votes(gone, busy(5), down[answer]()), want: until(5, false)},
		"gone from one, impatient":               {votes: votes(gone, grant(1, 9)), impatient: true, err: undecided},
		"withdrawn is not gone, as far as known": {votes: votes(gone, withdrawn, reentry(1, 9)), err: "the members do not agree"},
	} {
		got, decided, err := decideAcquire(tc.votes, tc.impatient)
		wantDecision(t, name, got, decided, err, tc.want, tc.err)
	}
}

func TestTokenReachesNoMajority(t *testing.T) {
	a, err := withoutToken(votes(grant(1, 9), grant(2, 9), busy(5)), []error{errDown})
	wantDecision(t, "two answer", a, true, err, answer{refused: &Busy{Split: true}}, "")
	a, err = withoutToken(votes(grant(1, 9), grant(2, 9), down[answer]()), []error{errDown})
	wantDecision(t, "one answers", a, true, err, answer{}, "the fencing token reached no majority: 2 of 3 members failed")
}

func TestDecideYes(t *testing.T) {
	yes, no, down := says(true), says(false), down[bool]()
	for name, tc := range map[string]struct {
		votes        *tally[bool]
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
	ended, none, down := says(Released{Found: true, Left: 1}), says(Released{}), down[Released]()
	for name, tc := range map[string]struct {
		votes *tally[Released]
		want  Released
		err   string
	}{
		"ended":               {votes: votes(down, ended, ended), want: Released{Found: true, Left: 1}},
		"ended at one":        {votes: votes(ended, down), err: undecided},
		"none":                {votes: votes(none, ended, none)},
		"ended at one, alone": {votes: votes(ended, none, down), err: "1 of 3 members failed"},
	} {
		got, decided, err := decideRelease(tc.votes)
		wantDecision(t, name, got, decided, err, tc.want, tc.err)
	}
}

func TestDecideInspect(t *testing.T) {
	by := func(owner string, holds int, ttl time.Duration) vote[State] {
		return says(State{Held: true, Owner: owner, Holds: holds, TTL: ttl})
	}
	free, down := says(State{}), down[State]()
	for name, tc := range map[string]struct {
		votes *tally[State]
		want  State
		err   string
	}{
		"one":                       {votes: votes(by("a", 1, 9)), err: undecided},
		"shortest ttl, most holds":  {votes: votes(by("a", 2, 9), by("a", 1, 8)), want: State{Held: true, Owner: "a", Holds: 2, TTL: 8}},
		"the same the other way":    {votes: votes(by("a", 1, 8), by("a", 2, 9)), want: State{Held: true, Owner: "a", Holds: 2, TTL: 8}},
		"a window":                  {votes: votes(by("", 0, 9), by("", 0, 8)), want: State{Held: true, TTL: 8}},
		"free and in a window":      {votes: votes(free, by("", 0, 8)), err: undecided},
		"free, the third may count": {votes: votes(free, free), err: undecided},
		"free":                      {votes: votes(free, free, by("a", 1, 9))},
		"three owners":              {votes: votes(by("a", 1, 9), by("b", 1, 9), by("c", 1, 9))},
		"unknown":                   {votes: votes(by("a", 1, 9), free, down), err: "1 of 3 members failed"},
		"free as far as they say":   {votes: votes(free, free, down)},
		"unreachable":               {votes: votes(free, down, down), err: "2 of 3 members failed"},
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

// again is that a member is asked once more.
type again struct {
	member int
	after  time.Duration
}

// paper is an election whose members are not there: one that is asked again gives an
// answer a little later.
func paper(usual time.Duration, reply vote[answer]) (e *election, asked *[]again) {
	q := &quorum{majority: 2, usual: make([]atomic.Int64, 3)}
	q.usual[1].Store(int64(usual))
	asked = new([]again)
	b := &ballot[answer]{tally: *votes[answer](), quorum: q, arrived: make(chan vote[answer], 3)}
	began := time.Now()
	b.send = func(member int) {
		*asked = append(*asked, again{member, time.Since(began)})
		time.AfterFunc(time.Microsecond, func() { b.arrived <- reply })
	}
	return &election{ballot: b, claim: &Claim{}}, asked
}

// Who has one vote and one refusal asks the one again that refused, and then waits for
// the third no longer than usual.
func TestContendersDoNotWaitForADeadMember(t *testing.T) {
	for name, tc := range map[string]struct{ usual, again, grace time.Duration }{
		"members that answer at once": {0, time.Millisecond, 5 * time.Millisecond},
		"slow members":                {10 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refused := vote[answer]{member: 2, answer: busy(5).answer}
				e, asked := paper(tc.usual, refused)
				e.arrived <- grant(1, 9)
				e.arrived <- refused
				began := time.Now()
				a, err := e.count()
				if b, ok := a.refused.(*Busy); err != nil || !ok || !b.Split {
					t.Errorf("%+v, %v", a, err)
				}
				if took := time.Since(began); took != tc.grace {
					t.Errorf("waited for %v, want %v", took, tc.grace)
				}
				if want := []again{{2, tc.again}}; !reflect.DeepEqual(*asked, want) {
					t.Errorf("asked again: %v, want %v", *asked, want)
				}
			})
		})
	}
}

func TestMemberThatIsAskedAgainMayDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, asked := paper(0, grant(4, 9))
		e.arrived <- busy(5)
		e.arrived <- vote[answer]{member: 1, answer: grant(3, 9).answer}
		a, err := e.count()
		if err != nil || a.grant.Token != 4 || len(*asked) != 1 {
			t.Errorf("%+v, %v; asked again: %v", a, err, *asked)
		}
	})
}

// What is known of a member that does not answer fades.
func TestUsualTime(t *testing.T) {
	q := &quorum{usual: make([]atomic.Int64, 2)}
	q.answered(0, 8*time.Millisecond, nil)
	q.answered(1, 4*time.Millisecond, nil)
	if got := q.usualTime(); got != 8*time.Millisecond {
		t.Errorf("%v, want that of the slowest", got)
	}
	q.answered(0, time.Second, errDown)
	if got := q.usualTime(); got != 6*time.Millisecond {
		t.Errorf("%v after a failure, want a quarter less", got)
	}
}

func TestQuorumReportsARenewalOnce(t *testing.T) {
	for _, sent := range [][]time.Duration{{2, 1}, {1, 2}} {
		var o outcome
		v := &renewalVotes{tally: *votes[bool](), to: &o}
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

// Callers that give up early say nothing about the members.
func TestUsualTimeOutlivesHaste(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s := &Store{config: Config{Workers: goroutines{}}, servers: []*conn.Server{refusing(t)}}
		q := &quorum{Store: s, usual: make([]atomic.Int64, 1)}
		for _, tc := range []struct {
			ctx  context.Context
			want time.Duration
		}{{ctx, 8 * time.Millisecond}, {context.Background(), 6 * time.Millisecond}} {
			q.usual[0].Store(int64(8 * time.Millisecond))
			b := newBallot(tc.ctx, q, &conn.Command{Script: newScripts("PUBLISH", true).inspect, Keys: 1, Words: []any{"k"}}, time.Second, decodeState)
			if v := <-b.arrived; v.err == nil {
				t.Error("no error")
			}
			if got := q.usualTime(); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		}
	})
}

type goroutines struct{}

func (goroutines) Start(f func())                { go f() }
func (goroutines) Begin(task interface{ Run() }) { go task.Run() }

// refusing is a server that refuses connections.
func refusing(t *testing.T) *conn.Server {
	client := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:1",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errDown },
	})
	t.Cleanup(func() { _ = client.Close() })
	return conn.New(client, conn.Config{Timeout: time.Second, Workers: goroutines{}})
}

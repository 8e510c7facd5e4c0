//go:build go1.25

package store

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

type list = []any

func n(n int64) any { return n }

func TestReplyToAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Claim{Terms: Terms{Lease: 30 * time.Second}}
		for name, tc := range map[string]struct {
			reply   any
			want    Acquired
			refused error
			err     string
		}{
			"a free lock":   {reply: "1760000000000001", want: Acquired{Terms: Terms{Lease: c.Lease}, Token: 1760000000000001, TTL: c.Lease, Outermost: true}},
			"entered":       {reply: list{n(1), "7", n(8000), n(9), n(0), n(0), n(9000)}, want: Acquired{Terms: Terms{Lease: 9 * time.Second}, Token: 7, TTL: 8 * time.Second}},
			"entered fixed": {reply: list{n(1), "7", n(8000), n(9), n(1), n(0), n(-9000)}, want: Acquired{Terms: Terms{Lease: 9 * time.Second, Fixed: true}, Token: 7, TTL: 8 * time.Second, Outermost: true}},
			"token ahead":   {reply: list{n(1), "7", n(9000), n(6), n(1), n(0), n(9000)}, want: Acquired{Terms: Terms{Lease: 9 * time.Second}, Token: 7, TTL: 9 * time.Second, Outermost: true, Ahead: true}},
			"busy":          {reply: list{n(2), "", n(500), n(5), n(1), n(0)}, refused: &Busy{Until: time.Now().Add(500 * time.Millisecond), Why: HolderIsFixed, Clock: Clock{Redis: 5 * time.Microsecond}}},
			"in window":     {reply: list{n(2), "", n(500), n(0), n(2), n(0)}, refused: &Busy{Until: time.Now().Add(500 * time.Millisecond), Why: InDedupWindow}},
			"handed over":   {reply: list{n(2), "", n(500), n(0), n(3), n(0)}, refused: &Busy{Until: time.Now().Add(500 * time.Millisecond), Why: HandedOver}},
			"new in queue":  {reply: list{n(2), "", n(-1), n(0), n(0), n(1)}, refused: &Busy{New: true}},
			"gone":          {reply: list{n(3), ""}, refused: ErrGone},
			"withdrawn":     {reply: list{n(4), ""}, refused: errGivenUp},
			"other kind":    {reply: list{n(5), ""}, refused: errOtherKind},
			"other form":    {reply: list{n(6), ""}, refused: ErrUpgrade},
			"attempt":       {reply: list{n(1), "7", n(9000), n(7), n(1), n(3), n(9000)}, want: Acquired{Terms: Terms{Lease: 9 * time.Second}, Token: 7, TTL: 9 * time.Second, Outermost: true, Attempt: 3}},
			"attempt ahead": {reply: list{n(1), "7", n(9000), n(6), n(1), n(1), n(9000)}, want: Acquired{Terms: Terms{Lease: 9 * time.Second}, Token: 7, TTL: 9 * time.Second, Outermost: true, Ahead: true, Attempt: 1}},
			"answered":      {reply: list{n(7), "paid"}, refused: &Answered{"paid"}},
			"reused":        {reply: list{n(8), ""}, refused: ErrReused},
			"unknown":       {reply: list{n(9), ""}, refused: ErrOutcomeUnknown},

			"no token":              {reply: "OK", err: `an unexpected reply: "OK"`},
			"token too great":       {reply: "99999999999999999999", err: "an unexpected reply"},
			"token 0":               {reply: "0", err: `an unexpected reply: "0"`},
			"empty":                 {reply: list{}, err: "an unexpected reply of 0 values"},
			"grant cut short":       {reply: list{n(1), "7", n(9000), n(8000), n(1), n(0)}, err: "an unexpected reply of 6 values"},
			"grant without a token": {reply: list{n(1), "OK", n(9000), n(8000), n(0), n(0), n(9000)}, err: `an unexpected reply: "OK"`},
			"busy cut short":        {reply: list{n(2), "", n(500)}, err: "an unexpected reply of 3 values"},
			"busy without new":      {reply: list{n(2), "", n(500), n(0), n(0)}, err: "an unexpected reply of 5 values"},
			"answer cut short":      {reply: list{n(7)}, err: "an unexpected reply of 1 values"},
			"of a release":          {reply: list{n(12), "", n(0), n(5)}, err: "an unexpected reply"},
			"gone, for nobody":      {reply: list{n(3)}, err: "an unexpected reply of 1 values"},
			"foreign status":        {reply: list{n(15), ""}, err: "an unexpected reply"},
			"negative status":       {reply: list{n(-1)}, err: "an unexpected reply"},
			"foreign list":          {reply: list{"1", "7"}, err: "an unexpected reply of 2 values"},
			"number for a text":     {reply: list{n(7), n(7)}, err: "an unexpected reply of 2 values"},
			"number":                {reply: n(1), err: "an unexpected reply: int64"},
			"nothing":               {reply: nil, err: "an unexpected reply: <nil>"},
		} {
			got, err := c.decode(conn.Reply{Value: tc.reply})
			if tc.refused != nil {
				if !reflect.DeepEqual(err, tc.refused) {
					t.Errorf("%s: %+v, want %+v", name, err, tc.refused)
				}
			} else if wantText(t, name, err, tc.err) && got != tc.want {
				t.Errorf("%s: %+v, want %+v", name, got, tc.want)
			}
			// What is not compensated, and what replicas must have. Who cannot read it has it compensated all the same.
			if did := did(tc.reply); did != (got.Token != 0 || strings.HasPrefix(name, "grant ")) {
				t.Errorf("%s: did is %v", name, did)
			}
		}
		if !errors.Is(errGivenUp, ErrGone) {
			t.Error("a claim that was given back is not gone")
		}
		fixed := &Claim{Terms: Terms{Lease: time.Second, Fixed: true}}
		if g, err := fixed.decode(conn.Reply{Value: "7", Sent: start}); err != nil || !g.Fixed || g.Lease != time.Second || g.Sent != start {
			t.Errorf("fixed: %+v, %v", g, err)
		}
	})
}

func TestReplyToARelease(t *testing.T) {
	for name, tc := range map[string]struct {
		reply any
		want  Released
		err   string
	}{
		"free for all":      {reply: "3", want: Released{Found: true, Heard: 3}},
		"a negative number": {reply: "-1", err: `an unexpected reply: "-1"`},
		"nobody heard":      {reply: "", want: Released{Found: true}},
		"no such hold":      {reply: list{n(0), ""}},
		"holds remain":      {reply: list{n(11), ""}, want: Released{Found: true}},
		"the queue is next": {reply: list{n(12), "", n(0), n(5)}, want: Released{Found: true, QueueIsNext: true, Clock: Clock{Redis: 5 * time.Microsecond}}},

		"empty":          {reply: list{}, err: "an unexpected reply of 0 values"},
		"no time":        {reply: list{n(12), "", n(0)}, err: "an unexpected reply of 3 values"},
		"foreign status": {reply: list{n(16), n(0)}, err: "an unexpected reply"},
		"of a claim":     {reply: list{n(3), ""}, err: "an unexpected reply"},
		"no text":        {reply: list{n(11)}, err: "an unexpected reply of 1 values"},
		"number":         {reply: n(3), err: "an unexpected reply: int64"},
		"text":           {reply: "OK", err: `an unexpected reply: "OK"`},
		"token":          {reply: "1760000000000001", err: `an unexpected reply: "1760000000000001"`},
	} {
		got, err := decodeRelease(conn.Reply{Value: tc.reply})
		if wantText(t, name, err, tc.err) && got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestReplyToAnInspection(t *testing.T) {
	for name, tc := range map[string]struct {
		reply any
		want  Inspection
		err   string
	}{
		"free":      {reply: list{n(13), "", n(-2), n(5), list{}, list{}}},
		"held":      {reply: list{n(13), "", n(900), n(5), list{"mode", "x7 30000 p:1 p:2+", "p:1", "2"}, list{}}, want: Inspection{Status: StatusHeld, Owner: "p:1", Holds: 2, TTL: 900 * time.Millisecond, Holders: []Holder{{Owner: "p:1", Count: 2, TTL: 900 * time.Millisecond, Lease: 30 * time.Second}}}},
		"endless":   {reply: list{n(13), "", n(-1), n(5), list{"p:1", "1"}, list{}}, want: Inspection{Status: StatusHeld, Owner: "p:1", Holds: 1, TTL: -time.Millisecond, Holders: []Holder{{Owner: "p:1", Count: 1, TTL: -time.Millisecond}}}},
		"in window": {reply: list{n(13), "", n(900), n(5), list{"mode", "w900"}, list{}}, want: Inspection{Status: StatusDedupWindow, TTL: 900 * time.Millisecond}},

		"shared": {
			reply: list{n(13), "", n(900), n(5), list{"mode", "s", "latchkey:holder:p:2", "505 30000 7 p:2 p:3", "latchkey:holder:o w", "1005 30000 8 p:4", "latchkey:holder:dead", "5 30000 6 p:1"}, list{}},
			want:  Inspection{Status: StatusShared, Holds: 3, TTL: 900 * time.Millisecond, Form: Shared, Holders: []Holder{{Owner: "o w", Count: 1, TTL: time.Millisecond, Lease: 30 * time.Second}, {Owner: "p:2", Count: 2, TTL: 500 * time.Microsecond, Lease: 30 * time.Second}}},
		},
		"outer has ended": {
			reply: list{n(13), "", n(900), n(5), list{"mode", "s", "latchkey:holder:p:2", "505 30000 7 - p:3"}, list{}},
			want:  Inspection{Status: StatusShared, Owner: "p:2", Holds: 1, TTL: 900 * time.Millisecond, Form: Shared, Holders: []Holder{{Owner: "p:2", Count: 1, TTL: 500 * time.Microsecond, Lease: 30 * time.Second}}},
		},
		"permits": {
			reply: list{n(13), "", n(900), n(5), list{"latchkey:weight:1:2:p", "-", "mode", "p", "latchkey:holder:p:2", "505 30000 7 p:2", "latchkey:holder:2:p", "505 30000 9 p:3",
				"latchkey:weight:2:2:p", "-", "latchkey:weight:1:dead", "-"}, list{}},
			want: Inspection{Status: StatusPermits, Holds: 2, TTL: 900 * time.Millisecond, Form: Form{kind: 'p'}, Holders: []Holder{
				{Owner: "2:p", Count: 1, Weight: 3, TTL: 500 * time.Microsecond, Lease: 30 * time.Second}, {Owner: "p:2", Count: 1, Weight: 1, TTL: 500 * time.Microsecond, Lease: 30 * time.Second}}},
		},
		"of the dead": {reply: list{n(13), "", n(900), n(5), list{"mode", "s", "latchkey:holder:p:2", "5 30000 7 p:2"}, list{}}},
		"parked":      {reply: list{n(13), "", n(900), n(5), list{"mode", "h7 ab 900"}, list{}}, want: Inspection{Status: StatusParked, TTL: 900 * time.Millisecond, Ticket: "ab"}},
		"resumed":     {reply: list{n(13), "", n(900), n(5), list{"mode", "h7 ab 900", "latchkey:holder:p:2", "505 30000 7 p:2"}, list{}}, want: Inspection{Status: StatusHeld, Owner: "p:2", Holds: 1, TTL: 900 * time.Millisecond, Ticket: "ab", Holders: []Holder{{Owner: "p:2", Count: 1, TTL: 500 * time.Microsecond, Lease: 30 * time.Second}}}},

		"granted": {
			reply: list{n(13), "", n(900), n(2_000_005), list{"mode", "x500005 0+", "p:1", "1"}, list{}},
			want: Inspection{Status: StatusHeld, Owner: "p:1", Holds: 1, TTL: 900 * time.Millisecond, Holders: []Holder{
				{Owner: "p:1", Count: 1, TTL: 900 * time.Millisecond, HeldFor: 1500 * time.Millisecond, Granted: true}}},
		},
		"granted, one of several": {
			reply: list{n(13), "", n(900), n(2_000_005), list{"mode", "s", "latchkey:holder:p:1", "2000505 0 1900005 p:1"}, list{}},
			want: Inspection{Status: StatusShared, Owner: "p:1", Holds: 1, TTL: 900 * time.Millisecond, Form: Shared, Holders: []Holder{
				{Owner: "p:1", Count: 1, TTL: 500 * time.Microsecond, HeldFor: 100 * time.Millisecond, Granted: true}}},
		},
		"a clock set back": {
			reply: list{n(13), "", n(900), n(5), list{"mode", "x500005", "p:1", "1"}, list{}},
			want:  Inspection{Status: StatusHeld, Owner: "p:1", Holds: 1, TTL: 900 * time.Millisecond, Holders: []Holder{{Owner: "p:1", Count: 1, TTL: 900 * time.Millisecond, Lease: 30 * time.Second}}},
		},
		"handed over by": {
			reply: list{n(13), "", n(900), n(5), list{"mode", "h7 ab 900", "latchkey:by", "p:1"}, list{}},
			want:  Inspection{Status: StatusParked, TTL: 900 * time.Millisecond, Ticket: "ab", By: "p:1"},
		},
		"handed over, and taken back": {
			reply: list{n(13), "", n(900), n(5), list{"mode", "x5", "latchkey:by", "p:1", "p:1", "1"}, list{}},
			want:  Inspection{Status: StatusHeld, Owner: "p:1", Holds: 1, TTL: 900 * time.Millisecond, Holders: []Holder{{Owner: "p:1", Count: 1, TTL: 900 * time.Millisecond, Lease: 30 * time.Second}}},
		},
		"outcome unknown": {
			reply: list{n(13), "", n(900), n(5), list{"mode", "i3 ab 900"}, list{}},
			want:  Inspection{Status: StatusOutcomeUnknown, TTL: 900 * time.Millisecond, Attempt: 3},
		},
		"a string": {
			reply: list{n(13), "", n(900), n(5), list{"mode", "f"}, list{}},
			want:  Inspection{Status: StatusForeign, TTL: 900 * time.Millisecond},
		},
		"Redisson's write lock": {
			reply: list{n(13), "", n(900), n(5), list{"mode", "write", "u:1:write", "1"}, list{}},
			want: Inspection{Status: StatusForeign, Owner: "u:1:write", Holds: 1, TTL: 900 * time.Millisecond, Holders: []Holder{
				{Owner: "u:1:write", Count: 1, TTL: 900 * time.Millisecond}}},
		},
		"a queue": {
			reply: list{n(13), "", n(-2), n(2_000_005), list{}, list{
				"p:w:1", "500005", "q:2|p3w2", "1500005.5", "q:3 import-7", "1900005", "q:4|s asynq:7:q:4", "2400005.5", "x", "7", "!q:2|p3w2", "50000002000000000"}},
			want: Inspection{Queue: []Queued{{Process: "p:w:", Waits: 1500 * time.Millisecond}, {Process: "q:", Form: Form{kind: 'p'}, Waits: 500 * time.Millisecond, Polls: true},
				{Process: "q:", Owner: "import-7", Waits: 100 * time.Millisecond}, {Process: "q:", Owner: "asynq:7:", Form: Shared, Polls: true}, {Waits: 1999998 * time.Microsecond}}},
		},

		"no queue":       {reply: list{n(13), "", n(900), n(5), list{}}, err: "an unexpected reply of 5 values"},
		"half an entry":  {reply: list{n(13), "", n(-2), n(5), list{}, list{"p:1"}}, err: "an unexpected reply"},
		"no fields":      {reply: list{n(13), "", n(900), n(5)}, err: "an unexpected reply of 4 values"},
		"cut short":      {reply: list{n(13)}, err: "an unexpected reply of 1 values"},
		"no list":        {reply: list{n(13), "", n(900), n(5), "p:1"}, err: "an unexpected reply of 5 values"},
		"half a field":   {reply: list{n(13), "", n(900), n(5), list{"p:1"}, list{}}, err: "an unexpected reply"},
		"no list at all": {reply: n(1), err: "an unexpected reply: int64"},
	} {
		got, err := decodeInspection(conn.Reply{Value: tc.reply})
		if wantText(t, name, err, tc.err) && !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// An inspection knows the kinds of locks that the scripts know, and no others.
func TestKindsOfLocks(t *testing.T) {
	text, _ := scriptFiles.ReadFile("scripts/parts/read.lua")
	kinds := regexp.MustCompile(`\^\(\[(\w+)\]\)`).FindSubmatch(text)
	if kinds == nil {
		t.Fatal("read.lua does not say which kinds there are")
	}
	for kind := 'a'; kind <= 'z'; kind++ {
		if known := strings.ContainsRune(string(kinds[1]), kind); known != ownMode.MatchString(string(kind)+"7") {
			t.Errorf("%c: known to the scripts: %v; not so to an inspection", kind, known)
		}
	}
}

func TestReplyOfYesOrNo(t *testing.T) {
	for name, tc := range map[string]struct {
		reply any
		want  bool
		err   string
	}{
		"done":       {reply: list{n(10), ""}, want: true},
		"merged":     {reply: "10", want: true},
		"none":       {reply: list{n(0), ""}},
		"no text":    {reply: list{n(10)}, err: "an unexpected reply of 1 values"},
		"empty":      {reply: list{}, err: "an unexpected reply of 0 values"},
		"of a claim": {reply: list{n(3), ""}, err: "an unexpected reply"},
		"number":     {reply: n(1), err: "an unexpected reply: int64"},
		"text":       {reply: "1", err: `an unexpected reply: "1"`},
		"in list":    {reply: list{"1"}, err: "an unexpected reply of 1 values"},
	} {
		got, err := yes(conn.Reply{Value: tc.reply})
		if wantText(t, name, err, tc.err) && got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// wantText is true when there is no error, as is right.
func wantText(t *testing.T, name string, err error, want string) bool {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("%s: no error; want %q", name, want)
	case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error %v; want %q", name, err, want)
	}
	return err == nil && want == ""
}

type outcome struct {
	held bool
	err  error
	sent time.Time
}

func (o *outcome) ReleaseAnswered(_ Released, err error) { o.err = err }
func (o *outcome) Renewed(held bool, err error, sent time.Time) {
	*o = outcome{held, err, sent}
}

// A reply that is none of ours confirms nothing.
func TestForeignReplyConfirmsNothing(t *testing.T) {
	var o outcome
	(&BackgroundRelease{to: &o}).Receive(conn.Reply{Value: "OK"}, nil)
	if o.err == nil {
		t.Error("a release was confirmed")
	}
	(&renewalCommand{to: &o}).Receive(conn.Reply{Value: "OK"}, nil)
	if o.held || o.err == nil {
		t.Errorf("a renewal: %+v", o)
	}
}

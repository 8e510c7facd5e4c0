package store

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// setEach sets each field of a struct for itself, those of nested structs too, and calls check with its path. A field of a
// type that is not known here has to get a case, and thought.
func setEach(t *testing.T, all reflect.Value, path string, check func(path string)) {
	t.Helper()
	for i := range all.NumField() {
		name := path + all.Type().Field(i).Name
		v := all.Field(i)
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() // unexported ones can be set as well
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		switch {
		case v.Type() == reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Now().Add(time.Hour)))
		case v.Kind() == reflect.Struct:
			setEach(t, v, name+".", check)
			continue
		case v.Kind() == reflect.Bool:
			v.SetBool(!v.Bool())
		case v.Type() == reflect.TypeFor[time.Duration]():
			v.SetInt(v.Int() + int64(time.Millisecond)) // the least that counts
		case v.CanInt():
			v.SetInt(v.Int() + 1)
		case v.CanUint():
			v.SetUint(v.Uint() + 's')
		case v.Kind() == reflect.String:
			v.SetString(v.String() + "more")
		case v.Type() == reflect.TypeFor[context.Context]():
			v.Set(reflect.ValueOf(t.Context()))
		case v.Kind() == reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		default:
			t.Fatalf("%s: no case for a %v: what does it make of a lock?", name, v.Type())
		}
		check(name)
		v.Set(was)
	}
}

// A field of which nobody has thought makes a lock special, so that no fast path loses it in silence.
func TestEachFieldMakesALockSpecial(t *testing.T) {
	owner := Holding{NewName("lock:", "k"), "p:1", "p:1"}
	simple := Terms{Lease: usualLease}
	var way Way
	var whose Owner
	claim := Claim{Holding: owner, Terms: simple}
	release := Release{Holding: owner, Terms: simple, Token: 7, LastToken: 7}
	for _, tc := range []struct {
		what    string
		all     any
		short   func() bool
		whether []string // fields that may have any value
	}{
		{"terms", &simple, func() bool { return simple.IsSimpleIn(Exclusive) }, []string{"Lease"}},
		{"terms of a form", &simple, func() bool { return simple.IsSimpleIn(simple.Form) }, []string{"Lease", "Form.kind", "Form.permits", "Form.weight"}},
		{"way", &way, func() bool { return way.IsSimple() }, nil},
		{"owner", &whose, func() bool { return whose.IsSimple() && whose.Of("p:1") == "p:1" }, nil},
		{"holding", &owner, func() bool { return owner.isSimple() }, []string{"Name.keys", "Name.prefix", "Name.queueLength"}},
		{"terms of a claim", &claim.Terms, func() bool { return claim.isSimple() }, []string{"Lease"}},
		{"way of a claim", &claim.Way, func() bool { return claim.isSimple() }, nil},
		{"owner of a claim", &claim.Holding, func() bool { return claim.isSimple() }, []string{"Name.keys", "Name.prefix", "Name.queueLength"}},
		{"release", &release, func() bool { return release.isSimple() },
			[]string{"Holding.Name.keys", "Holding.Name.prefix", "Holding.Name.queueLength", "Terms.Lease", "Work", "Until", "Context"}},
	} {
		if !tc.short() {
			t.Errorf("%s: special as it is", tc.what)
		}
		setEach(t, reflect.ValueOf(tc.all).Elem(), "", func(path string) {
			if want := slices.Contains(tc.whether, path); tc.short() != want {
				t.Errorf("%s: with another %s it is simple: %v", tc.what, path, !want)
			}
		})
	}
	if new(Release).isSimple() {
		t.Error("a release that says nothing is short: it would free a lock of token 0")
	}
	if (&Release{Holding: owner, Terms: simple, Work: Failed}).isSimple() {
		t.Error("a release of what may be in the queue only is short")
	}
}

// What makes a lock special is said to Redis: a field of which no word tells is lost in silence.
func TestEachTermIsSaidToRedis(t *testing.T) {
	one := New(serverAt("a:1"), Config{})
	whose, terms := Holding{NewName("lock:", "k"), "o", "p:1"}, Terms{Form: Permits(3).Weighing(2), Lease: time.Second, Window: time.Minute}
	claim, release := Claim{Holding: whose, Terms: terms}, Release{Holding: whose, Terms: terms, Token: 7, LastToken: 7}
	words := func() []any {
		c := Claim{Holding: claim.Holding, Terms: claim.Terms}
		return slices.Concat(c.prepare(one).Words, release.command(one, new(releaseCommand), false).Words)
	}
	usual := words()
	said := func(path string) {
		if reflect.DeepEqual(words(), usual) {
			t.Errorf("with another %s Redis is told the same", path)
		}
	}
	setEach(t, reflect.ValueOf(&claim.Terms).Elem(), "claim.", said)
	setEach(t, reflect.ValueOf(&release.Terms).Elem(), "release.", func(path string) {
		// Redis has these of the lock since it was taken.
		if !slices.Contains([]string{"release.Fixed", "release.Lease", "release.Window"}, path) {
			said(path)
		}
	})
}

// A grant has the terms of its claim, but for what Redis says of a lock that was entered.
func TestEachTermIsInTheGrant(t *testing.T) {
	claim := Claim{Holding: Holding{NewName("lock:", "k"), "p:1", "p:1"}, Terms: Terms{Lease: time.Second}}
	for what, reply := range map[string]any{"a text": "7", "a list": []any{int64(1), "7", int64(1000), int64(5), int64(1), int64(0), int64(1000)}} {
		setEach(t, reflect.ValueOf(&claim.Terms).Elem(), "", func(path string) {
			want := claim.Terms
			got, err := claim.decode(conn.Reply{Value: reply})
			if what == "a list" {
				want.Lease, want.Fixed = time.Second, false // as it says
			}
			if err != nil || got.Terms != want {
				t.Errorf("%s, %s: %+v, %v; want %+v", what, path, got.Terms, err, want)
			}
		})
	}
}

// callersGoroutine are workers that do the work on the caller's goroutine.
type callersGoroutine struct{}

func (callersGoroutine) Start(work func())             { work() }
func (callersGoroutine) Begin(work interface{ Run() }) { work.Run() }

// One lock that is special, or has another lease, is not taken or freed by one command with others.
func TestEachTermKeepsALockApart(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer client.Close()
	s, simple := New(conn.New(client, conn.Config{Workers: callersGoroutine{}}), Config{}), Terms{Lease: usualLease}
	_ = s.servers[0].Merges() // finds out whether it does
	whose := Holding{NewName("lock:", "k"), "p:1", "p:1"}
	claims := []Claim{{Holding: whose, Terms: simple}, {Holding: whose, Terms: simple}}
	releases := []*Release{{Holding: whose, Terms: simple, Token: 7, LastToken: 7}, {Holding: whose, Terms: simple, Token: 7, LastToken: 7}}
	if s.takeAllCommand(claims) == nil || s.freeAllCommand(releases) == nil {
		t.Fatal("locks that are alike are kept apart")
	}
	setEach(t, reflect.ValueOf(&claims[1].Terms).Elem(), "", func(path string) {
		if s.takeAllCommand(claims) != nil {
			t.Errorf("with another %s it is taken with others", path)
		}
	})
	setEach(t, reflect.ValueOf(&releases[1].Terms).Elem(), "", func(path string) {
		if s.freeAllCommand(releases) != nil {
			t.Errorf("with another %s it is freed with others", path)
		}
	})
}

func TestForms(t *testing.T) {
	two, all := Permits(3).Weighing(2), []Form{Exclusive, Resumed, Attempted, Shared, Permits(1), Permits(3), Permits(3).Weighing(2)}
	for _, tc := range []struct {
		form                 Form
		word, label          string
		alone, stays, permit bool
		includes, waitsFor   []Form
	}{
		{form: Exclusive, label: "exclusive", alone: true, includes: all, waitsFor: all},
		{form: Resumed, label: "exclusive", alone: true, stays: true, includes: all, waitsFor: all},
		{form: Attempted, label: "exclusive", alone: true, stays: true, includes: all, waitsFor: all},
		{form: Shared, word: "s", label: "shared", includes: []Form{Shared}, waitsFor: []Form{Exclusive, Resumed, Attempted, Permits(1), Permits(3), two}},
		{form: Permits(3), word: "p3", label: "permits", permit: true, includes: []Form{Permits(1), Permits(3), two}, waitsFor: []Form{Exclusive, Resumed, Attempted, Shared}},
		{form: two, word: "p3w2", label: "permits", permit: true, includes: []Form{Permits(1), Permits(3), two}, waitsFor: []Form{Exclusive, Resumed, Attempted, Shared, two}},
		{form: Permits(1), word: "p1", label: "permits", permit: true, includes: []Form{Permits(1), Permits(3), two}, waitsFor: all},
	} {
		f := tc.form
		if f.word() != tc.word || f.Label() != tc.label || f.Alone() != tc.alone || f.Stays() != tc.stays || f.NeedsPermit() != tc.permit {
			t.Errorf("%+v: %q, %q, alone %v, stays %v, needs a permit %v", f, f.word(), f.Label(), f.Alone(), f.Stays(), f.NeedsPermit())
		}
		for _, other := range all {
			if got := f.Includes(other); got != slices.Contains(tc.includes, other) {
				t.Errorf("%+v includes %+v: %v", f, other, got)
			}
			if got := f.WaitsFor(other); got != slices.Contains(tc.waitsFor, other) {
				t.Errorf("%+v waits for %+v: %v", f, other, got)
			}
		}
	}
	for way, want := range map[Way]Form{{}: Shared, {Enter: 7}: Shared, {Ticket: "t"}: Resumed, {Attempt: new(Attempt)}: Attempted} {
		if got := way.formOf(Shared); got != want {
			t.Errorf("got by %+v it is %+v", way, got)
		}
	}
}

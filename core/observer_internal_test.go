package core

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core/internal/life"
)

// Without an Observer the hooks cost a look at a field that is nil.
func TestWithoutObserversNothingIsAllocated(t *testing.T) {
	l := &Locker{}
	ctx := context.Background()
	err := errorsOf{}.Lost("k", life.Deleted)
	if n := testing.AllocsPerRun(100, func() {
		_, o := l.observers.Wants(ctx, "k", 1, &l.defaults.Settings)
		if o != nil {
			t.Fatal("the call is observed")
		}
		inside{}.Notify(ctx, l, Event{Kind: EventRefused, Err: err}, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Observers hear each error of a call in its own word. An error without one would be "unavailable".
func TestEachErrorHasItsReason(t *testing.T) {
	const never = "" // a call that wants a lock does not fail with it alone
	reasonOf := map[string]struct {
		err    error
		reason string
	}{
		"ErrNotAcquired":    {ErrNotAcquired, "deadline"},
		"ErrDeadlock":       {ErrDeadlock, never},
		"ErrNoPermit":       {ErrNoPermit, never},
		"ErrUpgrade":        {ErrUpgrade, "upgrade"},
		"ErrLost":           {ErrLost, "lost"},
		"ErrHandedOver":     {ErrHandedOver, never},
		"ErrTicket":         {ErrTicket, "ticket"},
		"ErrNotHeld":        {ErrNotHeld, never},
		"ErrClosed":         {ErrClosed, "closed"},
		"ErrMaxHold":        {ErrMaxHold, "max_hold"},
		"ErrUnavailable":    {ErrUnavailable, "unavailable"},
		"ErrOverloaded":     {ErrOverloaded, "overloaded"},
		"ErrOutcomeUnknown": {ErrOutcomeUnknown, "outcome_unknown"},
		"ErrTooManyKeys":    {ErrTooManyKeys, never},
		"ErrResultTooLarge": {ErrResultTooLarge, never},
		"ErrInvalidKey":     {ErrInvalidKey, "invalid_key"},
	}
	for name, want := range reasonOf {
		if _, reason := kindOf(want.err); want.reason != never && reason != want.reason {
			t.Errorf("%s: %q, want %q", name, reason, want.reason)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
			if _, known := reasonOf[spec.Names[0].Name]; !known {
				t.Errorf("%s: what do Observers hear?", spec.Names[0].Name)
			}
		}
		return true
	})
}

func TestEachStatusHasItsState(t *testing.T) {
	for status, state := range states {
		if state == "" {
			t.Errorf("status %d has no word", status)
		}
	}
}

package adapter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

type (
	mode  string
	other string
)

func TestSplitTakesOutWhatIsTheAdaptersOwn(t *testing.T) {
	own, rest := adapter.Split[mode](
		core.Lease(-1), adapter.Option(mode("a")), core.Option{}, adapter.Option(other("b")), adapter.Option(mode("c")))
	if !slices.Equal(own, []mode{"a", "c"}) {
		t.Errorf("own %q", own)
	}
	others, rest := adapter.Split[other](rest...)
	if !slices.Equal(others, []other{"b"}) || len(rest) != 2 {
		t.Errorf("others %q, rest %v", others, rest)
	}
	err := adapter.Validate(rest...)
	if err == nil || !strings.Contains(err.Error(), "Lease(-1ns)") || !strings.Contains(err.Error(), "an Option is empty") {
		t.Errorf("the rest is checked: %v", err)
	}
}

// An option that nobody has taken out is a mistake, not nothing.
func TestAnOptionOfAnAdapterIsRefusedElsewhere(t *testing.T) {
	locker := locktest.New(t)
	_, ofCall := locker.TryLock(t.Context(), "42", adapter.Option(mode("a")))
	for name, err := range map[string]error{
		"a call":   ofCall,
		"Validate": adapter.Validate(adapter.Option(mode("a"))),
		"Fallback": adapter.Validate(adapter.Fallback(adapter.Option(mode("a")))),
	} {
		if err == nil || !strings.Contains(err.Error(), "adapter_test.mode") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateRefusesWhatManyCallsCannotHave(t *testing.T) {
	for part, opt := range map[string]core.Option{
		"single call":   core.Owner("o"),
		"option of New": core.Prefix("p:"),
	} {
		if err := adapter.Validate(core.NoWait(), opt); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	if err := errors.Join(adapter.Validate(), adapter.Validate(core.Lease(time.Second), core.NoWait())); err != nil {
		t.Error(err)
	}
}

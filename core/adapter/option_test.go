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

type named struct{}

func (named) String() string { return "Mode is an option of mylock.By" }

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
	if err := adapter.Validate(adapter.Option(named{})); err == nil || err.Error() != "core: Mode is an option of mylock.By" {
		t.Error(err)
	}
}

func TestFallbackRefusesWhatHasNoEffectInIt(t *testing.T) {
	for _, o := range []core.Option{core.Lease(time.Second), core.Name("orders"), core.Shared(), core.BackgroundRelease(), adapter.Ticket("t")} {
		if err := adapter.Validate(adapter.Fallback(core.Wait(time.Second), o)); err == nil || !strings.Contains(err.Error(), "only") {
			t.Error(err)
		}
	}
	if err := adapter.Validate(adapter.Fallback(core.Wait(time.Second), core.MaxWaiters(3))); err != nil {
		t.Error(err)
	}
}

func TestWaitsTellsWhatOptionsSay(t *testing.T) {
	longest, most := adapter.Waits(core.Lease(time.Second))
	if longest != nil || most != nil {
		t.Error(longest, most)
	}
	longest, most = adapter.Waits(core.NoWait(), core.MaxWaiters(3))
	if longest == nil || *longest != 0 || most == nil || *most != 3 {
		t.Error(longest, most)
	}
}

func TestValidateRefusesWhatManyCallsCannotHave(t *testing.T) {
	for part, opt := range map[string]core.Option{
		"single call":    core.Owner("o"),
		"option of New":  core.Prefix("p:"),
		"option of Open": adapter.Looking(),
	} {
		if err := adapter.Validate(core.NoWait(), opt); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	if err := errors.Join(adapter.Validate(), adapter.Validate(core.Lease(time.Second), core.NoWait())); err != nil {
		t.Error(err)
	}
}

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
	if err := adapter.Validate(rest...); err == nil || !strings.Contains(err.Error(), "Lease(-1ns)") || !strings.Contains(err.Error(), "an Option is empty") {
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

func TestPreparedOptionsAreThoseOfEachLocker(t *testing.T) {
	usual, brief := locktest.New(t), locktest.New(t, core.Lease(5*time.Second))
	prepared := adapter.Prepare(core.Name("orders"), adapter.Fallback(core.NoWait()))
	for range 2 {
		wantLease(t, usual, 30*time.Second, prepared)
		wantLease(t, brief, 5*time.Second, prepared)
		// Other options of a call are for that call.
		wantLease(t, brief, time.Second, prepared, core.Lease(time.Second))
	}
}

// wantLease takes a lock, and has NoWait refuse another call for it.
func wantLease(t *testing.T, locker *core.Locker, lease time.Duration, opts ...core.Option) {
	t.Helper()
	k, err := locker.Lock(t.Context(), "42", opts...)
	if err != nil {
		t.Fatal(err)
	}
	if ttl, err := k.TTL(t.Context()); err != nil || ttl > lease || ttl < lease-lease/5 {
		t.Errorf("TTL %v, %v; the lease is %v", ttl, err, lease)
	}
	if _, err := locker.Lock(t.Context(), "42", opts...); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("NoWait: %v", err)
	}
	if err := k.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPreparedOptionsAreCheckedByEachCall(t *testing.T) {
	locker := locktest.New(t)
	for name, bad := range map[string]core.Option{"Lease": core.Lease(-1), "empty": {}} {
		prepared := adapter.Prepare(core.NoWait(), bad)
		for range 2 {
			if _, err := locker.Lock(t.Context(), "42", prepared); err == nil {
				t.Errorf("%s: there is a lock", name)
			}
		}
		if adapter.Validate(prepared) == nil {
			t.Errorf("%s: Validate accepts it", name)
		}
	}
}

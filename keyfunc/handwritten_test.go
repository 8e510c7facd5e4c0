//go:build go1.25

package keyfunc_test

import (
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

type ctxKey struct{ name string }

type valueRequest struct {
	keyfunc.Request
	values map[any]any
}

func (r valueRequest) Value(key any) any { return r.values[key] }

var userPtr, tenantPtr = &ctxKey{"user"}, &ctxKey{"tenant"}

// Two keys of one type are two values.
func TestValuesUnderKeysOfOneType(t *testing.T) {
	for name, k := range map[string][2]any{
		"structs":  {ctxKey{"user"}, ctxKey{"tenant"}},
		"pointers": {userPtr, tenantPtr},
	} {
		r := valueRequest{values: map[any]any{k[0]: 7, k[1]: 7}}
		user, err := keyfunc.Value(k[0])(r)
		if err != nil {
			t.Fatal(err)
		}
		tenant, err := keyfunc.Value(k[1])(r)
		if err != nil {
			t.Fatal(err)
		}
		if user == tenant {
			t.Errorf("%s: user 7 and tenant 7 have one key: %s", name, user)
		}
	}
}

// A Func that is written by hand may ask others at the same time.
func TestFuncsAskedAtTheSameTime(t *testing.T) {
	r := valueRequest{values: map[any]any{"a": "1", "b": "2"}}
	a, b := keyfunc.Value("a"), keyfunc.Value("b")
	both := func(r keyfunc.Request) (string, error) {
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = a(r) })
		wg.Go(func() { _, _ = b(r) })
		wg.Wait()
		return a(r)
	}
	for range 100 {
		if key, err := keyfunc.Scope("x", both)(r); err != nil || key != "x:value.a=1" {
			t.Fatal(key, err)
		}
	}
}

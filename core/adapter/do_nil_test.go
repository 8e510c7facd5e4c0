package adapter_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

// Without a function no lock is taken.
func TestNoFunctionToRun(t *testing.T) {
	locker := locktest.New(t)
	for name, do := range map[string]func(){
		"Do":    func() { _, _ = adapter.Do(t.Context(), locker, "42", nil) },
		"DoAll": func() { _, _ = adapter.DoAll(t.Context(), locker, []string{"42"}, nil) },
	} {
		func() {
			defer func() {
				if why := recover(); why != "core: "+name+" needs a function to run, and it is nil" {
					t.Errorf("%s: %v", name, why)
				}
			}()
			do()
		}()
	}
}

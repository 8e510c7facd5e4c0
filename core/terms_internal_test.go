package core

import (
	"reflect"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// The terms that the options of a call say reach its claim as a whole, and those of a lease its release.
func TestTermsTravelAsAWhole(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		terms := store.Terms{Form: store.Permits(3), Fixed: true, Lease: time.Second, Window: time.Minute}
		for i, all := 0, reflect.ValueOf(terms); i < all.NumField(); i++ {
			if all.Field(i).IsZero() {
				t.Fatalf("give %s a value here", all.Type().Field(i).Name)
			}
		}
		s, h := leased(t, l, schedule.Now().Add(time.Minute))
		given := l.defaults
		given.Terms = terms
		call := wanted(t.Context(), s.name, &given)
		if claim := call.claim("p:1", store.Listening); claim.Terms != terms {
			t.Errorf("the claim has %+v", claim.Terms)
		}
		s.Terms = terms
		if r := s.releaseOf(&h.handle, store.Done); r.Terms != terms {
			t.Errorf("the release has %+v", r.Terms)
		}
	})
}

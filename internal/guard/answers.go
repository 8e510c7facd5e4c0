package guard

import (
	"reflect"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// Answers has what answers the refusals of an adapter in place of the problem body. F is the
// adapter's type of such a function. The zero value is ready, and safe for concurrent use.
type Answers[F any] struct{ everywhere atomic.Pointer[F] }

// Set has f answer for all guards that have nothing of their own; a nil f takes it away.
func (a *Answers[F]) Set(f F) { a.everywhere.Store(&f) }

// Option has f answer for one guard.
func (*Answers[F]) Option(f F) core.Option { return adapter.Option(onRefused[F]{f}) }

type onRefused[F any] struct{ own F }

// by returns who answers for a guard with f as its own; nil: the problem body.
func (a *Answers[F]) by(f F) F {
	if set := a.everywhere.Load(); set != nil && reflect.ValueOf(f).IsNil() {
		return *set
	}
	return f
}

package adapter

import (
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/core"
)

// Forms decides for each call in which form its lock is taken, for an adapter whose Config has
// Shared and Permits. C is their argument, such as the framework's request. The zero value leaves
// the form to the options.
type Forms[C any] struct {
	// Shared says whether a call shares the lock; otherwise it has the lock alone.
	Shared func(C) bool
	// Permits returns the n of [core.Permits] for a call, which a bad one fails.
	Permits func(C) int
}

// Validate says which of the two cannot be combined with each other, or with options that are for
// every call. An adapter refuses these at set-up, beside what the function [Validate] says. It does
// not block.
func (f Forms[C]) Validate(opts ...core.Option) error {
	s, _ := inside.Settings(nil, opts)
	field := "Config.Permits"
	switch {
	case f.Shared != nil && f.Permits != nil:
		return errors.New("there are a Config.Shared and a Config.Permits: leave one of them out")
	case f.Shared != nil:
		field = "Config.Shared"
	case f.Permits == nil:
		return nil
	}
	switch {
	case !s.Form.Alone():
		return fmt.Errorf("%s decides for each call, but core.Shared or core.Permits is among the options: leave one of them out", field)
	case s.Window > 0:
		return fmt.Errorf("%s cannot be combined with core.KeepFor, for others may be at work in the dedup window: leave one of them out", field)
	}
	return nil
}

// Options returns opts with the form of the call.
func (f Forms[C]) Options(call C, opts []core.Option) []core.Option {
	n := len(opts)
	switch {
	case f.Shared != nil && f.Shared(call):
		return append(opts[:n:n], core.Shared())
	case f.Permits != nil:
		return append(opts[:n:n], core.Permits(f.Permits(call)))
	}
	return opts
}

// Describe says in which form calls with the options take their locks, for people: "shared",
// "3 permits", "shared or alone", "permits", or nothing where all have them alone.
func (f Forms[C]) Describe(opts ...core.Option) string {
	s, _ := inside.Settings(nil, opts)
	switch n := s.Form.Permits(); {
	case f.Shared != nil:
		return "shared or alone"
	case f.Permits != nil:
		return "permits"
	case n == 1:
		return "1 permit"
	case n > 1:
		return fmt.Sprintf("%d permits", n)
	case !s.Form.Alone():
		return "shared"
	}
	return ""
}

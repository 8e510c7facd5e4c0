package adapter

import (
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/core"
)

// Forms decides for each call in which form its lock is taken, for an adapter whose Config has
// Shared, Permits and Weight. C is their argument, such as the framework's request. The zero value leaves
// the form to the options.
type Forms[C any] struct {
	// Shared says whether a call shares the lock; otherwise it has the lock alone.
	Shared func(C) bool
	// Permits returns the n of [core.Permits] for a call, which a bad one fails.
	Permits func(C) int
	// Weight returns the w of [core.Weight] for a call, which a bad one fails.
	Weight func(C) int
}

// Validate says which of them cannot be combined with each other, or with options that are for
// every call. An adapter refuses these at set-up, beside what the function [Validate] says. It does
// not block.
func (f Forms[C]) Validate(opts ...core.Option) error {
	s, _ := inside.Settings(nil, opts)
	field := "Config.Permits"
	if f.Shared != nil {
		field = "Config.Shared"
	}
	switch {
	case f.Shared != nil && f.Permits != nil:
		return errors.New("there are a Config.Shared and a Config.Permits: leave one of them out")
	case f.Weight != nil && f.Permits == nil && !s.Form.NeedsPermit():
		return errors.New("there is a Config.Weight without permits: set Config.Permits, or give core.Permits among the options")
	case f.Weight != nil && s.Form.Weight() > 1:
		return errors.New("Config.Weight decides for each call, but core.Weight is among the options: leave one of them out")
	case f.Shared == nil && f.Permits == nil:
		return nil
	case !s.Form.Alone():
		return fmt.Errorf("%s decides for each call, but core.Shared or core.Permits is among the options: leave one of them out", field)
	case s.Window > 0:
		return fmt.Errorf("%s cannot be combined with core.KeepFor, for others may be at work in the dedup window: leave one of them out", field)
	}
	return nil
}

// Options returns opts with the form of the call.
func (f Forms[C]) Options(call C, opts []core.Option) []core.Option {
	opts = opts[:len(opts):len(opts)]
	if f.Shared != nil && f.Shared(call) {
		opts = append(opts, core.Shared())
	}
	if f.Permits != nil {
		opts = append(opts, core.Permits(f.Permits(call)))
	}
	if f.Weight != nil {
		opts = append(opts, core.Weight(f.Weight(call)))
	}
	return opts
}

// Describe says in which form calls with the options take their locks, for people: "shared",
// "3 permits", "2 of 3 permits", "shared or alone", "permits", "weighted permits", or nothing where all
// have them alone.
func (f Forms[C]) Describe(opts ...core.Option) string {
	s, _ := inside.Settings(nil, opts)
	switch n, w := s.Form.Permits(), s.Form.Weight(); {
	case f.Shared != nil:
		return "shared or alone"
	case f.Weight != nil:
		return "weighted permits"
	case f.Permits != nil, s.PermitsEach != nil:
		return "permits"
	case w > 1:
		return fmt.Sprintf("%d of %d permits", w, n)
	case n == 1:
		return "1 permit"
	case n > 1:
		return fmt.Sprintf("%d permits", n)
	case !s.Form.Alone():
		return "shared"
	}
	return ""
}

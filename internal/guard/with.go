package guard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// Common is what guards have in common, where they do not say otherwise themselves. F is the adapter's type of a function
// that answers a refusal. The zero value is nothing.
type Common[F any] struct {
	config Config
	answer F
}

// With returns what guards with a Locker, nil for core.Default, and with options have in common. It panics when an option is
// bad, with a sentence that begins with the adapter's name.
func With[F any](name string, l *core.Locker, opts []core.Option) Common[F] {
	c := Common[F]{config: Config{Locker: l}}
	c.apply(name, opts)
	validate(name, c.config.Options)
	return c
}

// of returns the configuration and the answer of a guard, which has its own.
func (c Common[F]) of(name string, own Config, answer F) Common[F] {
	opts := own.Options
	own.Locker = cmp.Or(own.Locker, c.config.Locker)
	own.Status = cmp.Or(own.Status, c.config.Status)
	own.BufferBody = cmp.Or(own.BufferBody, c.config.BufferBody)
	own.FailOpen = own.FailOpen || c.config.FailOpen
	own.Strict = own.Strict || c.config.Strict && own.Param != "" // it is about parameters
	own.Options = slices.Clone(c.config.Options)
	if isNil(answer) {
		answer = c.answer
	}
	whole := Common[F]{own, answer}
	whole.apply(name, opts)
	return whole
}

// apply adds options: the adapter's own become fields.
func (c *Common[F]) apply(name string, opts []core.Option) {
	answered, rest := adapter.Split[onRefused[F]](opts...)
	for _, o := range answered {
		c.answer = o.own
	}
	fields, rest := adapter.Split[option](rest...)
	for _, o := range fields {
		if err := o.set(&c.config); err != nil {
			panic(name + ": " + err.Error())
		}
	}
	c.config.Options = append(c.config.Options, rest...)
}

func validate(name string, opts []core.Option) {
	if err := adapter.Validate(opts...); err != nil {
		panic(name + ": bad option: " + strings.ReplaceAll(err.Error(), "core: ", ""))
	}
}

package guard

import (
	"errors"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// option is a field of Config, as an option of the adapters' By functions.
type option interface{ set(*Config) error }

type (
	strict     struct{}
	locker     struct{ *core.Locker }
	bufferBody int64
)

// Strict is Config.Strict as an option.
func Strict() core.Option { return adapter.Option(strict{}) }

// Locker is Config.Locker as an option. New panics when it is nil.
func Locker(l *core.Locker) core.Option { return adapter.Option(locker{l}) }

// BufferBody is Config.BufferBody as an option.
func BufferBody(n int64) core.Option { return adapter.Option(bufferBody(n)) }

func (strict) set(c *Config) error {
	c.Strict = true
	return nil
}

func (o locker) set(c *Config) error {
	if o.Locker == nil {
		return errors.New("Locker(nil): give it a Locker, or leave it out and call core.SetDefault")
	}
	c.Locker = o.Locker
	return nil
}

func (o bufferBody) set(c *Config) error {
	c.BufferBody = int64(o)
	return nil
}

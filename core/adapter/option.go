package adapter

import "github.com/latchkey-go/latchkey/core"

// Option returns an option that an adapter understands and a lock does not, such as how
// refusals are answered. value has a type of the adapter's own, which finds it with [Split].
// [core.New], calls and [Validate] refuse the option.
func Option(value any) core.Option {
	return inside.Option(func(s *settings) {
		s.Fail("an option of type %T is for an adapter that knows it, not for a lock", value)
		s.ForAdapter = append(s.ForAdapter, value)
	})
}

// Split divides the options of middleware: own has the values of type T that [Option] was given,
// and rest all other options, both in order. It checks nothing; [Validate] refuses a value of
// another type in rest. It does not block.
func Split[T any](opts ...core.Option) (own []T, rest []core.Option) {
	for _, o := range opts {
		if value, ok := valueOf[T](o); ok {
			own = append(own, value)
		} else {
			rest = append(rest, o)
		}
	}
	return own, rest
}

func valueOf[T any](o core.Option) (value T, ok bool) {
	if s, _ := inside.Settings(nil, []core.Option{o}); len(s.ForAdapter) == 1 {
		value, ok = s.ForAdapter[0].(T)
	}
	return value, ok
}

// Validate says what is wrong with options for every call, so that an adapter can refuse them at
// set-up. It refuses what [core.Locker.Lock] refuses, and [core.Owner]: calls that share an owner
// do not exclude one another. It does not block.
func Validate(opts ...core.Option) error {
	_, err := inside.Settings(nil, opts)
	return err
}

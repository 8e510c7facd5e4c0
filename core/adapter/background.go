package adapter

import "github.com/latchkey-go/latchkey/core"

// ReleasesInBackground reports whether wrappers of l with the options return without waiting for
// their release, as [core.BackgroundRelease] has it: whether that was said, here or to [core.New],
// and has an effect. nil is a Locker without options. It does not block.
func ReleasesInBackground(l *core.Locker, opts ...core.Option) bool {
	if l == nil {
		return inside.Settings(opts).ReleasesLater()
	}
	return inside.ReleasesLater(l, opts)
}

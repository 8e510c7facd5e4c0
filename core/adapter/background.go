package adapter

import "github.com/latchkey-go/latchkey/core"

// ReleasesInBackground reports whether [core.BackgroundRelease] is in effect for wrappers of l with
// the options: given here or to [core.New], and not overridden by another option. A nil l is a
// Locker without options. It does not block.
func ReleasesInBackground(l *core.Locker, opts ...core.Option) bool {
	s, err := inside.Settings(l, opts)
	return err == nil && s.ReleasesLater()
}

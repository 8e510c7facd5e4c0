//go:build !linux

package faults

import "time"

// now is the time in nanoseconds, by the machine's clock: Go offers no steady one
// that processes share. A clock that is set during a run spoils it.
func now() int64 { return time.Now().UnixNano() }

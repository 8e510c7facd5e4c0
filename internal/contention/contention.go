// Package contention says for people who has a lock: in the log of a call that has waited for it, and on the command line.
package contention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/limitedlog"
)

// LongWait is how long a call has to wait for its refusal to be worth a line in the log.
const LongWait = time.Second

// WriteInVain writes a line about a call that has waited for its lock in vain, with args. Who has the lock is asked for
// in the background, at most once a second. It does not block.
func WriteInVain(ctx context.Context, log *limitedlog.Log, locker *core.Locker, kind string, refused error, args ...any) {
	busy := (*core.BusyError)(nil)
	errors.As(refused, &busy)
	key := KeyOf(refused)
	complete := func(write func(more ...any)) {
		adapter.LookUp(locker, key, func(info core.Info, waiting int, asked bool) {
			more := []any{"waiting", waiting}
			if asked {
				more = append(details(info), more...)
			} else if busy != nil && busy.Done {
				more = append(more, "state", core.StateDedupWindow)
			}
			write(more...)
		})
	}
	log.Completed(ctx, slog.LevelInfo, kind, complete, append([]any{"key", key, "error", refused}, args...)...)
}

// KeyOf returns the key of the lock that a call was refused with err; empty: err does not say.
func KeyOf(err error) string {
	var busy *core.BusyError
	var failed *core.LockError
	switch {
	case errors.As(err, &busy):
		return busy.Key
	case errors.As(err, &failed):
		return failed.Key
	}
	return ""
}

// details are what a line has of an answer of Redis.
func details(info core.Info) []any {
	args := []any{"state", State(info)}
	if info.HandedOverBy != "" {
		args = append(args, "handed_over_by", Process(info.HandedOverBy))
	}
	if longest, ok := Longest(info); ok {
		args = append(args, "holder", Process(longest.Owner), "owner", longest.Owner, "for", longest.HeldFor.Round(time.Millisecond))
	}
	if n := len(info.Holders); n > 1 {
		args = append(args, "holders", n)
	}
	if info.Attempt > 0 {
		args = append(args, "attempt", info.Attempt)
	}
	return append(args, "waiting_processes", len(info.Queue))
}

// More words for a lock that is held.
const (
	attempt core.State = "attempt" // of Once, or at an idempotent request
	granted core.State = "granted" // by a release, which its process has not confirmed
)

// States are those of a lock that is not free, as [State] says them.
var States = []core.State{
	core.StateHeld, granted, core.StateShared, core.StatePermits, attempt, core.StateParked, core.StateOutcomeUnknown,
	core.StateDedupWindow, core.StateAnswered, core.StateForeign,
}

// State is core's, and says more of a lock that is held.
func State(info core.Info) core.State {
	switch {
	case info.State != core.StateHeld:
		return info.State
	case info.Attempt > 0:
		return attempt
	case info.Holders[0].Granted:
		return granted
	}
	return core.StateHeld
}

// ofDigest is a key whose end nobody reads: that of an idempotent request, or that by which KeepOne remembers a task.
var ofDigest = regexp.MustCompile(`(?i)^(idempotent:[0-9a-f]{64}|KeepOne=asynq\\:[0-9a-f]{32}\\:)$`)

// IsKeepOnes says that a key is that by which KeepOne remembers for an hour a task that is over: nobody looks for it.
func IsKeepOnes(key string) bool {
	return ofDigest.MatchString(key) && strings.HasPrefix(key, "KeepOne=")
}

// Matches says that a key contains a text, but not by chance: a digest contains it only where the key begins with it.
func Matches(key, text string) bool {
	if ofDigest.MatchString(key) {
		return strings.HasPrefix(key, text)
	}
	return strings.Contains(key, text)
}

// OwnerMatches is Matches for an owner. Most of that of a process are random letters, and so is what asynqlock begins it with.
func OwnerMatches(owner, text string) bool {
	if _, ok := core.ProcessOf(owner); ok {
		begin := strings.LastIndexByte(owner[:strings.LastIndexByte(owner, '@')], ':') + 1
		return strings.HasPrefix(owner, text) || strings.HasPrefix(owner[begin:], text)
	}
	return strings.Contains(owner, text)
}

// Longest is who has held the lock for the longest time; false when nobody holds it.
func Longest(info core.Info) (longest core.Holder, held bool) {
	for _, h := range info.Holders {
		if !held || h.HeldFor > longest.HeldFor {
			longest, held = h, true
		}
	}
	return longest, held
}

// Renewal is how long ago a holder has renewed its lease, or taken the lock, and whether the next renewal is overdue; not known
// where nobody renews it, or Redis does not tell.
func Renewal(h core.Holder) (ago time.Duration, overdue, known bool) {
	ago = h.Lease - h.TTL
	return ago, ago > h.Lease/2, h.Lease > 0 && h.TTL >= 0 && ago >= 0
}

// Process names the process of an owner: its name and its number. An owner of another kind stays as it is.
func Process(owner string) string {
	p, ok := core.ProcessOf(owner)
	if !ok {
		return owner
	}
	return fmt.Sprintf("%s (%d)", p.Name, p.PID)
}

package adapter

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

var (
	// ErrReused refuses a call with [Attempt] whose key belongs to another request.
	ErrReused = option.ErrReused
	// ErrOutcomeUnknown is [core.ErrOutcomeUnknown]: it refuses a call with [Attempt], if it wants that, when the
	// outcome of the last attempt is unknown.
	ErrOutcomeUnknown = core.ErrOutcomeUnknown
)

var hexadecimal = regexp.MustCompile(`^[0-9a-f]{16,128}$`)

// Attempt takes a lock for an attempt at an idempotent request, which is processed once. The first
// attempt that ends with [Answer] is the last: as long as its answer is stored, calls get that, by
// [AnswerOf], in place of the lock. request is a digest, of 16 to 128 lower-case hexadecimal digits, of
// all that distinguishes the request from others with the same key: calls with another digest fail
// with [ErrReused], from the first attempt on.
//
// During an attempt other calls are refused with [core.BusyError], or wait for the answer as
// [core.Wait] says. The release of the lock decides the outcome of the attempt:
//
//   - [Answer]: done.
//   - [core.Lock.Abort]: failed. The next attempt may be made; after the first the key is free again.
//   - [core.Lock.Unlock], [core.Locker.ForceUnlock], or the end of the lease: unknown. The next attempt is made, or refused with
//     [ErrOutcomeUnknown] if refuse is set. Redis remembers the attempt for known.
//
// A call whose context holds the lock fails with [core.ErrDeadlock]. [core.Once] is made of the same.
//
// It is for [core.Locker.Lock] and [core.Locker.TryLock], and cannot be combined with [core.KeepFor],
// [core.Shared], [core.Permits], [core.Owner] or [core.NewQuorum]. With [core.Replicas] a call waits
// for the replicas when an attempt begins, not when it ends: a failover may lose the answer.
func Attempt(request string, known time.Duration, refuse bool) core.Option {
	return inside.Option(func(s *settings) {
		switch {
		case !hexadecimal.MatchString(request):
			s.Fail("Attempt: give a digest of 16 to 128 lower-case hexadecimal digits")
		case !isWindow(known):
			s.Fail("Attempt: attempts are remembered for 1ms to %v, not for %v", option.LongestWindow, known)
		default:
			s.Attempt = &option.Attempt{Request: request, Known: known, Refuse: refuse}
		}
	})
}

// AttemptOf returns the number of the attempt for which a lock was taken: 1 for the first, and for one
// after a first that has failed. If it is more, the outcome of an earlier one is unknown. It is 0 for a
// lock of no request, and for a re-entry. It does not block.
func AttemptOf(lock *core.Lock) int { return inside.AttemptOf(lock) }

func isWindow(d time.Duration) bool { return d >= time.Millisecond && d <= option.LongestWindow }

// Answer unlocks a lock that was taken with [Attempt] and stores the answer for keep, 1ms to 366 days,
// in one step: both are done, or neither. It blocks and fails as [core.Lock.Unlock] does; with another
// keep it fails and does neither. After [core.ErrUnavailable] it is repeated in the background until the
// lease ends; if that fails too, the outcome is unknown. After [core.Lock.DropWindow] it is Abort.
func Answer(ctx context.Context, lock *core.Lock, answer []byte, keep time.Duration) error {
	if !isWindow(keep) {
		return fmt.Errorf("core: answers are stored for 1ms to %v, not for %v", option.LongestWindow, keep)
	}
	return inside.Answer(ctx, lock, string(answer), keep)
}

// AnswerOf returns the answer for which a call with [Attempt] was refused with err.
func AnswerOf(err error) (answer []byte, ok bool) {
	var answered *option.Answered
	if errors.As(err, &answered) {
		return []byte(answered.Answer), true
	}
	return nil, false
}

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
	// ErrReused is why a call with [Attempt] is refused whose key belongs to another request.
	ErrReused = option.ErrReused
	// ErrOutcomeUnknown is why a call with [Attempt] is refused that does not want to be made
	// where nobody knows whether the last attempt has done its work.
	ErrOutcomeUnknown = option.ErrOutcomeUnknown
)

var hexadecimal = regexp.MustCompile(`^[0-9a-f]{16,128}$`)

// Attempt has a call take a lock for an attempt at a request that counts once: the first attempt
// to end with [Answer] is the only one, and as long as that is kept calls get it, by
// [AnswerOf], in place of the lock. request is a digest of all that tells the request from
// others with the same key, 16 to 128 lower-case hexadecimal digits; calls with another one
// fail with [ErrReused], from the first attempt on.
//
// While an attempt is made, others are refused with [core.BusyError], or wait as
// [core.Wait] says: for the answer. How the lock is released says what became of an attempt:
//
//   - [Answer]: it has done its work.
//   - [core.Lock.Abort]: it has failed, and the next one may be made. If it was the first, the
//     key is free again.
//   - Not at all, by the end of its lease or by [core.Lock.Unlock]: nobody knows. Then the next
//     attempt is made, or refused with [ErrOutcomeUnknown] if refuse is set. It is known for
//     known that there was an attempt.
//
// It is for [core.Locker.Lock] and [core.Locker.TryLock], and goes with none of [core.KeepFor],
// [core.Shared], [core.Permits], [core.Owner] and [core.NewQuorum]. With [core.Replicas],
// replicas are waited for when an attempt begins, not when it ends: one whose answer a failover
// loses is one of which nobody knows.
func Attempt(request string, known time.Duration, refuse bool) core.Option {
	return inside.Option(func(s *settings) {
		switch {
		case s.OfNew:
			s.Fail("Attempt is for one call, not for New: each request has its own digest")
		case !hexadecimal.MatchString(request):
			s.Fail("Attempt: give a digest of 16 to 128 lower-case hexadecimal digits")
		case !isWindow(known):
			s.Fail("Attempt: attempts are known for 1ms to %v, not for %v", option.LongestWindow, known)
		default:
			s.Attempt = &option.Attempt{Request: request, Known: known, Refuse: refuse}
		}
	})
}

// AttemptOf returns the number of the attempt for which a lock was taken: 1 for the first, and
// for one after a first that has failed. More says that nobody knows what an earlier one has
// done. It is 0 for a lock of no request, and for one that was entered. It does not block.
func AttemptOf(lock *core.Lock) int { return inside.AttemptOf(lock) }

func isWindow(d time.Duration) bool { return d >= time.Millisecond && d <= option.LongestWindow }

// Answer unlocks a lock that was taken with [Attempt] and leaves the answer for keep, 1ms to 366
// days, in one step: both are done, or neither. It blocks and fails as [core.Lock.Unlock] does; with
// another keep it fails, and has done neither. After [core.ErrUnavailable] it is repeated in the
// background until the lease ends; if that fails, too, nobody knows what became of the attempt.
// After [core.Lock.DropWindow] it is Abort.
func Answer(ctx context.Context, lock *core.Lock, answer []byte, keep time.Duration) error {
	if !isWindow(keep) {
		return fmt.Errorf("core: answers are kept for 1ms to %v, not for %v", option.LongestWindow, keep)
	}
	return inside.Answer(ctx, lock, string(answer), keep)
}

// AnswerOf returns the answer for which a call with [Attempt] was refused with err.
func AnswerOf(err error) (answer []byte, ok bool) {
	var answered *option.Answered
	if !errors.As(err, &answered) {
		return nil, false
	}
	return []byte(answered.Answer), true
}

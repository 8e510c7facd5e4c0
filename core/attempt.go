package core

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// attempt is one at a request that counts once, under a lease.
type attempt struct {
	number int
	answer *store.Answer // nil: it is not known yet
}

// answer is Unlock, and leaves the answer to the request for which the lock was taken. After
// DropWindow it is Abort.
func (k *Lock) answer(ctx context.Context, answer store.Answer) error {
	s := k.lease
	if s.attempt == nil || k.reentry {
		return errors.New("core: the lock was not taken for a request that counts once")
	}
	s.mu.Lock()
	s.attempt.answer = &answer
	s.mu.Unlock()
	return k.finish(ctx, false, false)
}

// noAttempt is the refusal of a call for an attempt. Where err says what became of an earlier one
// it is that.
func noAttempt(key string, err error) error {
	var answered *store.Answered
	switch {
	case errors.As(err, &answered):
		return &LockError{Key: key, kind: answered, text: "the request of the lock was answered before"}
	case errors.Is(err, store.ErrReused):
		return &LockError{Key: key, kind: err, text: "the lock is of another request"}
	case errors.Is(err, store.ErrOutcomeUnknown):
		return &LockError{Key: key, kind: err, text: "nobody knows what the last attempt under the lock has done"}
	}
	return err
}

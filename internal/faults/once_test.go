package faults

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/checker"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Calls of core.Once, which all workers make, some of them long after the first.

const (
	calls     = 50 // of the requests and calls, in per cent
	shortKept = lease / 4
	tooLarge  = 70_000
)

var errWorkFailed = errors.New("the work has failed")

// callOnce calls core.Once. What the call returns is that of its own run, or of an earlier one.
func (a *actorState) callOnce(key string) {
	kept := answersKept
	if strings.ContainsAny(key[len(key)-1:], "02468") {
		kept = shortKept
	}
	a.sent = a.worker.open(key, form{})
	a.sent.update(func(v *visit) { v.Request = &checker.Request{Kept: kept} })
	ctx, leave := a.client()
	defer leave()
	options := []core.Option{core.KeepFor(kept), core.Lease(a.order.Lease), core.Wait(200 * time.Millisecond)}
	if a.chance(15) { // then nobody knows what its run has done, if that takes longer
		options = append(options, core.MaxHold(20*time.Millisecond))
	}
	refuse := a.chance(40)
	if refuse {
		options = append(options, core.RefuseUnknown())
	}
	defer func() {
		if p := recover(); p != nil && p != errWorkFailed {
			panic(p)
		}
		a.sent.update(func(v *visit) { v.Done = now() })
		a.sent.close()
	}()
	got, err := core.Once(ctx, a.worker.locker, key, func(ctx context.Context) (string, error) {
		if refuse && core.AttemptOf(ctx) > 1 {
			a.sent.update(func(v *visit) { v.Broken = "it runs after one of which nobody knows" })
		}
		return a.run(ctx)
	}, options...)
	a.sent.result(ctx, got, err)
}

// run is the function.
func (a *actorState) run(ctx context.Context) (result string, err error) {
	k, _ := core.FromContext(ctx)
	a.do(k, core.AttemptOf(ctx))
	result = strings.Repeat(a.worker.nextID(), 1+a.random.IntN(500))
	end := a.random.IntN(100)
	switch {
	case end < 20:
		err = errWorkFailed
	case end < 30:
		result = strings.Repeat("x", tooLarge)
	}
	at := now()
	a.sent.update(func(v *visit) {
		v.Released, v.Request.Failed, v.Request.Answer = at, end < 40, redistest.Digest(result)
	})
	if end >= 30 && end < 40 {
		panic(errWorkFailed)
	}
	return result, err
}

// result enters what a call has returned.
func (r *record) result(ctx context.Context, got string, err error) {
	at, digest := now(), redistest.Digest(got)
	r.update(func(v *visit) {
		if v.Granted() {
			switch own := digest == v.Request.Answer; {
			case err == nil && v.Request.Failed:
				v.Broken = "a failed run, and no error"
			case !own:
				v.Broken = "a run has another result than its call"
			}
			v.Expect(err, errWorkFailed, core.ErrResultTooLarge, core.ErrLost, core.ErrMaxHold)
			return
		}
		v.Returned = at
		switch {
		case err == nil:
			v.Request.Again, v.Request.Answer = true, digest
		case errors.Is(err, core.ErrOutcomeUnknown):
			v.Refusal = "unknown"
		case ctx.Err() != nil:
			v.Refusal = "gone"
		default:
			v.Refusal = r.excused(kindOf(err), v.Called, at)
			v.Expect(err, core.ErrNotAcquired, core.ErrUnavailable, errWorkFailed) // that of a run of its process
		}
	})
}

// isCall says whether a key, or the name of a lock, is one of Once.
func isCall(key string) bool {
	return strings.HasPrefix(strings.TrimPrefix(key, lockName("")), "once-")
}

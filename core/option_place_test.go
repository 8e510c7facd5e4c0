package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// An option that stands where it has no effect is refused there, with a text that says where it
// belongs. Elsewhere the call reaches its lock.
func TestOptionsAreRefusedWhereTheyHaveNoEffect(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	ended := func(h interface{ Abort(context.Context) error }, err error) error {
		if err != nil {
			return err
		}
		return h.Abort(background)
	}
	fail := func(context.Context) error { return errEnough } // no dedup window
	places := map[string]func(l *core.Locker, o core.Option) error{
		"New":  func(_ *core.Locker, o core.Option) error { _, err := core.New(client, o); return err },
		"Lock": func(l *core.Locker, o core.Option) error { k, err := l.Lock(background, "k", o); return ended(k, err) },
		"TryLock": func(l *core.Locker, o core.Option) error {
			k, err := l.TryLock(background, "k", o)
			return ended(k, err)
		},
		"Resume": func(l *core.Locker, o core.Option) error {
			k, err := l.Resume(background, "k", "t", o)
			return ended(k, err)
		},
		"LockAll": func(l *core.Locker, o core.Option) error {
			m, err := l.LockAll(background, []string{"k"}, o)
			return ended(m, err)
		},
		"Do":    func(l *core.Locker, o core.Option) error { return l.Do(background, "k", fail, o) },
		"DoAll": func(l *core.Locker, o core.Option) error { return l.DoAll(background, []string{"k"}, fail, o) },
		"Lead":  func(l *core.Locker, o core.Option) error { return l.Lead(background, "k", fail, o) },
		"Once": func(l *core.Locker, o core.Option) error {
			_, err := core.Once(background, l, "k", func(context.Context) (int, error) { return 0, errEnough }, core.KeepFor(time.Hour), o)
			return err
		},
		"middleware": func(_ *core.Locker, o core.Option) error { return adapter.Validate(o) },
	}
	const (
		ofNew     = "is an option of New"
		notInNew  = "not for New"
		unwaiting = "which never wait"
		unlocks   = "Unlock waits"
		ofLead    = "Lead takes the options Lease, MaxHold and Name only"
		alone     = "Resume takes a lock alone"
		withOnce  = "Once and idempotent requests cannot be combined with"
	)
	type refusals map[string]string
	inCalls := refusals{}
	for place := range places {
		if place != "New" {
			inCalls[place] = ofNew
		}
	}
	onlyOnce := refusals{}
	for place := range places {
		if place != "Once" {
			onlyOnce[place] = "RefuseUnknown is for Once and WrapOnce"
		}
	}
	for name, c := range map[string]struct {
		option  core.Option
		refused refusals
	}{
		"Lease":             {core.Lease(time.Second), nil},
		"FixedLease":        {core.FixedLease(time.Second), refusals{"Lead": "cannot be combined with FixedLease"}},
		"MaxHold":           {core.MaxHold(time.Second), nil},
		"Name":              {core.Name("orders"), nil},
		"NoWait":            {core.NoWait(), refusals{"Lead": ofLead}},
		"Wait":              {core.Wait(time.Second), refusals{"TryLock": unwaiting, "Resume": unwaiting, "Lead": ofLead}},
		"MaxWaiters":        {core.MaxWaiters(3), refusals{"TryLock": unwaiting, "Resume": unwaiting, "Lead": ofLead}},
		"KeepFor":           {core.KeepFor(time.Second), refusals{"Lead": ofLead}},
		"BackgroundRelease": {core.BackgroundRelease(), refusals{"Lock": unlocks, "TryLock": unlocks, "Resume": unlocks, "LockAll": unlocks, "Lead": ofLead}},
		"Shared":            {core.Shared(), refusals{"New": notInNew, "Resume": alone, "Lead": ofLead, "Once": withOnce}},
		"Permits":           {core.Permits(3), refusals{"New": notInNew, "Resume": alone, "Lead": ofLead, "Once": withOnce}},
		"PermitsEach":       {core.PermitsEach(3), refusals{"New": notInNew, "Resume": alone, "Lead": ofLead, "Once": withOnce}},
		"Owner":             {core.Owner("o"), refusals{"New": "single call", "Resume": alone, "Lead": ofLead, "Once": withOnce, "middleware": "single call"}},
		"Prefix":            {core.Prefix("p:"), inCalls},
		"Timeout":           {core.Timeout(time.Second), inCalls},
		"Describe":          {core.Describe("shop"), inCalls},
		"Observe":           {core.Observe(new(ear)), inCalls},
		"Replicas":          {core.Replicas(1, time.Millisecond), inCalls},
		"ShardedPubSub":     {core.ShardedPubSub(), inCalls},
		"Ticket":            {adapter.Ticket("t"), refusals{"New": notInNew, "Lead": ofLead, "Once": withOnce}},
		"Attempt": {adapter.Attempt("0000000000000000", time.Hour, false), refusals{
			"New": notInNew, "Resume": alone, "LockAll": "under the lock of one key", "DoAll": "under the lock of one key", "Lead": ofLead, "Once": withOnce,
		}},
		"RefuseUnknown": {core.RefuseUnknown(), onlyOnce},
	} {
		for place, give := range places {
			t.Run(name+" in "+place, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					err := give(s.locker(), c.option)
					if part, refused := c.refused[place]; refused {
						wantMisuse(t, err, part)
					} else if err != nil && !errors.Is(err, errEnough) && !errors.Is(err, core.ErrTicket) {
						t.Errorf("it is refused: %v", err)
					}
				})
			})
		}
	}
}

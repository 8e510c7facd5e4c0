package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislock as its README says for one Redis of at least 7.0.5: KeyMajority 1
// and NoLoopTracking. Where a row asks for renewal, KeyValidity and
// ExtendInterval are those of the others; otherwise its defaults, 5 s and 2.5 s.
var rueidislockLibrary = library{name: rueidislockName, open: openRueidislock}

type rueidislocker struct{ locker rueidislock.Locker }

func openRueidislock(addr string, s settings) (locker, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:    1,
		NoLoopTracking: true,
		KeyValidity:    s.lease,
		ExtendInterval: s.lease / 3,
	})
	return rueidislocker{l}, err
}

func (l rueidislocker) lock(ctx context.Context, key string) (held, error) {
	ctx, cancel, err := l.locker.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return &rueidislockHeld{ctx, cancel}, nil
}

func (l rueidislocker) redisKey(key string) string { return "rueidislock:0:" + key }

func (l rueidislocker) close() error {
	l.locker.Close()
	return nil
}

type rueidislockHeld struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// unlock cannot report an error: cancel returns when the release was answered.
func (h *rueidislockHeld) unlock() error {
	h.cancel()
	return nil
}

func (h *rueidislockHeld) lost() bool { return h.ctx.Err() != nil }

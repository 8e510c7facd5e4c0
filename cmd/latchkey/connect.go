package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/latchkey-go/latchkey/core"
)

// connect returns a Locker on the Redis that -redis names, which disconnect closes, or an
// error and the exit code for it.
func (p *program) connect(ctx context.Context, opts ...core.Option) (locker *core.Locker, disconnect func(), exit int, err error) {
	logging.Disable() // an error says it, once
	locker, err = core.Open(ctx, p.url(), append(opts, core.Prefix(p.prefix))...)
	switch {
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrNotAcquired):
		return nil, nil, exitUnavailable, err
	case err != nil:
		return nil, nil, 0, fmt.Errorf("%w: %w", errUsage, err)
	}
	return locker, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = locker.Close(ctx) // what is not confirmed is logged, and ends with its lease
	}, 0, nil
}

func (p *program) url() string {
	address := cmp.Or(p.redis, os.Getenv("LATCHKEY_REDIS"), "localhost:6379")
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	return address
}

// newClient returns a client of what a Locker has been opened on.
func newClient(address string) (redis.UniversalClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	switch query := u.Query(); {
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, err
		}
		return redis.NewFailoverClient(o), nil
	case query.Has("addr"):
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, err
		}
		return redis.NewClusterClient(o), nil
	default:
		o, err := redis.ParseURL(address)
		if err != nil {
			return nil, err
		}
		return redis.NewClient(o), nil
	}
}

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

// connect returns a Locker on the Redis that -redis names, and what closes it.
func (p *program) connect(ctx context.Context, opts ...core.Option) (locker *core.Locker, disconnect func(), err error) {
	logging.Disable() // an error says it, once
	locker, err = core.Open(ctx, p.url(), append(opts, core.Prefix(p.prefix))...)
	switch {
	case errors.Is(err, core.ErrUnavailable):
		return nil, nil, err
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return locker, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = locker.Close(ctx) // what is not confirmed is logged, and ends with its lease
	}, nil
}

func (p *program) url() string {
	address := cmp.Or(p.redis, os.Getenv("LATCHKEY_REDIS"), "localhost:6379")
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	return address
}

// newClient returns a client of its own for an address that core.Open has read: a Locker does
// not lend the one that it has.
func newClient(address string) redis.UniversalClient {
	u, _ := url.Parse(address)
	switch query := u.Query(); {
	case query.Has("master_name"):
		o, _ := redis.ParseFailoverURL(address)
		return redis.NewFailoverClient(o)
	case query.Has("addr"):
		o, _ := redis.ParseClusterURL(address)
		return redis.NewClusterClient(o)
	default:
		o, _ := redis.ParseURL(address)
		return redis.NewClient(o)
	}
}

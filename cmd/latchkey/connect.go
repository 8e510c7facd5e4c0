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

// connect returns a client of the Redis that -redis names, and a Locker on it, which
// disconnect closes.
func (p *program) connect(opts ...core.Option) (client redis.UniversalClient, locker *core.Locker, disconnect func(), err error) {
	logging.Disable() // an error says it, once
	client, err = newClient(cmp.Or(p.redis, os.Getenv("LATCHKEY_REDIS"), "localhost:6379"))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: -redis: %w", errUsage, err)
	}
	locker, err = core.New(client, append(opts, core.Prefix(p.prefix))...)
	if err != nil {
		client.Close()
		return nil, nil, nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return client, locker, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = locker.Close(ctx) // what is not confirmed is logged, and ends with its lease
		client.Close()
	}, nil
}

func newClient(address string) (redis.UniversalClient, error) {
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("not host:port, nor a URL") // the error has the password in it
	}
	switch query := u.Query(); {
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, err
		}
		o.ContextTimeoutEnabled = true
		return redis.NewFailoverClient(o), nil
	case query.Has("addr"):
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, err
		}
		o.ContextTimeoutEnabled = true
		return redis.NewClusterClient(o), nil
	default:
		o, err := redis.ParseURL(address)
		if err != nil {
			return nil, err
		}
		o.ContextTimeoutEnabled = true
		return redis.NewClient(o), nil
	}
}

package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

func (s *embedded) client() *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial, PoolSize: 300})
	s.tb.Cleanup(func() { _ = client.Close() })
	return client
}

// locker returns a Locker with a client of its own, as another process has. At
// the end everything must have been unlocked.
func (s *embedded) locker(opts ...core.Option) *core.Locker {
	s.tb.Helper()
	l := s.open(opts...)
	s.tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			s.tb.Errorf("Close at the end of the test: %v", err)
		}
	})
	return l
}

// open is locker without the clean-up.
func (s *embedded) open(opts ...core.Option) *core.Locker {
	s.tb.Helper()
	quiet := core.Logger(slog.New(slog.DiscardHandler))
	l, err := core.New(s.client(), append([]core.Option{quiet}, opts...)...)
	if err != nil {
		s.tb.Fatalf("New: %v", err)
	}
	return l
}

// held says what Redis shows for a key: owner and count, or "" when it is free.
func (s *embedded) held(key string) string {
	for _, field := range s.fields(key) {
		if !isOurs(field) {
			return fmt.Sprintf("%s=%s", field, s.HGet("lock:"+key, field))
		}
	}
	return ""
}

// isOurs tells the fields of a lock that are no owner's.
func isOurs(field string) bool { return field == "mode" || strings.HasPrefix(field, "latchkey:") }

// mode reads the field of that name, of lock k: the token, and the lease as Redis has it.
func (s *embedded) mode() (token, lease string) {
	token, lease, _ = strings.Cut(strings.Trim(s.HGet("lock:k", "mode"), "x+"), " ")
	return token, lease
}

func (s *embedded) fields(key string) []string {
	if !s.Exists("lock:" + key) {
		return nil
	}
	fields, err := s.Miniredis.HKeys("lock:" + key)
	if err != nil {
		s.tb.Errorf("HKEYS: %v", err)
	}
	return fields
}

// isFree fails the test when something is left of the lock.
func (s *embedded) isFree(key string) {
	s.tb.Helper()
	if fields := s.fields(key); len(fields) > 0 {
		s.tb.Errorf("the lock %q is still in Redis: %v", key, fields)
	}
}

package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// scene is a lock, and somebody who wants something of it while his user lacks a right. Another may do all.
type scene struct {
	*testing.T
	l, another *core.Locker
	admin      *redis.Client
	key        string
	leave      []func() error // what follows with all rights, the last first, until it does not fail
}

// took is for a lock that is given back in the end.
func (s *scene) took(k *core.Lock, err error) *core.Lock {
	s.Helper()
	succeed(s.T, s.got(k, err))
	return k
}

func (s *scene) got(k *core.Lock, err error) error {
	if err == nil {
		s.leave = append(s.leave, func() error {
			if err := k.Abort(background); !errors.Is(err, core.ErrNotHeld) && !errors.Is(err, core.ErrLost) {
				return err
			}
			return nil
		})
	}
	return err
}

func (s *scene) all(opts ...core.Option) (*core.MultiLock, error) {
	m, err := s.l.LockAll(background, []string{s.key, s.key + "+"}, append(opts, core.NoWait())...)
	if err == nil {
		s.leave = append(s.leave, func() error { _ = m.Abort(background); return nil })
	}
	return m, err
}

// waits has a call wait for a lock that another has, which then ends.
func (s *scene) waits(end func(*core.Lock)) func() error {
	k, waiting := s.took(s.another.TryLock(background, s.key)), make(chan error, 1)
	go func() { waiting <- s.got(s.l.Lock(background, s.key, core.Wait(100*time.Millisecond))) }()
	redistest.Await(s.T, inTheEnd, "a call that waits", func() bool {
		info, _ := s.another.Inspect(background, s.key)
		return len(info.Queue) > 0
	})
	return func() error { end(k); return <-waiting }
}

// queue has a process wait for the lock that has died.
func (s *scene) queue() {
	name := fmt.Sprintf("lock:{lock:%s}:queue", s.key)
	succeed(s.T, s.admin.Do(background, "zadd", name, fmt.Sprint(time.Now().UnixMicro(), ".5"), "q:1").Err())
	succeed(s.T, s.admin.Do(background, "pexpire", name, 5000).Err())
}

// act begins with all rights, and returns what is then done without one.
type act func(s *scene) (does func() error)

func takes(opts ...core.Option) act {
	return func(s *scene) func() error {
		return func() error { return s.got(s.l.TryLock(background, s.key, opts...)) }
	}
}

func ends(end func(*core.Lock) error, opts ...core.Option) act {
	return func(s *scene) func() error {
		k := s.took(s.l.TryLock(background, s.key, opts...))
		return func() error { return end(k) }
	}
}

func unlocks(k *core.Lock) error { return k.Unlock(background) }
func aborts(k *core.Lock) error  { return k.Abort(background) }

const windowed = "Unlock of KeepFor" // leaves something

var acts = map[string]act{
	"Lock":                takes(),
	"KeepFor":             takes(core.KeepFor(time.Minute)),
	"FixedLease":          takes(core.FixedLease(time.Minute)),
	"Owner":               takes(core.Owner("somebody")),
	"Shared":              takes(core.Shared()),
	"Permits":             takes(core.Permits(3)),
	"Weight":              takes(core.Permits(3), core.Weight(2)),
	"Attempt":             takes(attemptAt(request)),
	"Unlock":              ends(unlocks),
	windowed:              ends(unlocks, core.KeepFor(time.Minute)),
	"Abort of KeepFor":    ends(aborts, core.KeepFor(time.Minute)),
	"Unlock of Shared":    ends(unlocks, core.Shared()),
	"Unlock of Weight":    ends(unlocks, core.Permits(3), core.Weight(2)),
	"Abort of an attempt": ends(aborts, attemptAt(request)),
	"Answer":              ends(func(k *core.Lock) error { return adapter.Answer(background, k, []byte("paid"), time.Minute) }, attemptAt(request)),
	"Refresh":             ends(func(k *core.Lock) error { return k.Refresh(background) }),
	"Once": func(s *scene) func() error {
		ran := false
		return func() error {
			run := func() error {
				_, err := core.Once(background, s.l, s.key, func(context.Context) (int, error) { ran = true; return 1, nil },
					core.KeepFor(time.Minute), core.RefuseUnknown())
				return err
			}
			s.leave = append(s.leave, func() error {
				if ran {
					return nil
				}
				return run()
			})
			return run()
		}
	},
	"ForceUnlock": func(s *scene) func() error {
		s.took(s.another.TryLock(background, s.key))
		return func() error { _, err := s.l.ForceUnlock(background, s.key); return err }
	},
	"wait": func(s *scene) func() error {
		s.took(s.another.TryLock(background, s.key))
		return func() error { return s.got(s.l.Lock(background, s.key, core.Wait(5*time.Millisecond))) }
	},
	"granted": func(s *scene) func() error { return s.waits(func(k *core.Lock) { unlock(s.T, k) }) },
	"deleted": func(s *scene) func() error {
		return s.waits(func(*core.Lock) {
			succeed(s.T, s.admin.Del(background, "lock:"+s.key).Err())
			succeed(s.T, s.admin.Publish(background, "redisson_lock__channel:{lock:"+s.key+"}", "0").Err())
		})
	},
	"Lock before a queue": func(s *scene) func() error { s.queue(); return takes()(s) },
	"Unlock before a queue": func(s *scene) func() error {
		defer s.queue()
		return ends(unlocks)(s)
	},
	"Shared beside others": func(s *scene) func() error {
		s.took(s.another.TryLock(background, s.key, core.Shared()))
		return takes(core.Shared())(s)
	},
	"enter": func(s *scene) func() error {
		k := s.took(s.another.TryLock(background, s.key))
		return func() error { return s.got(s.l.TryLock(k.Context(), s.key)) }
	},
	"leave": func(s *scene) func() error {
		k := s.took(s.another.TryLock(background, s.key))
		inner := s.took(s.l.TryLock(k.Context(), s.key))
		return func() error { return inner.Unlock(background) }
	},
	"Downgrade": func(s *scene) func() error {
		k := s.took(s.l.TryLock(background, s.key))
		return func() error {
			err := k.Downgrade(background)
			if info, failed := s.another.Inspect(background, s.key); err != nil && (failed != nil || info.Form != "exclusive" || info.Count != 1) {
				s.Errorf("Downgrade (%v) has left %+v, %v", err, info, failed)
			}
			return err
		}
	},
	"Handover": func(s *scene) func() error {
		k := s.took(s.l.TryLock(background, s.key))
		return func() error {
			ticket, err := k.Handover(background, time.Minute)
			if err == nil {
				s.leave = append(s.leave, func() error {
					resumed, err := s.another.Resume(background, s.key, ticket)
					succeed(s.T, err)
					return resumed.Unlock(background)
				})
			}
			return err
		}
	},
	"Resume": func(s *scene) func() error {
		ticket, err := s.took(s.another.TryLock(background, s.key)).Handover(background, time.Minute)
		succeed(s.T, err)
		resumed := func() error {
			k, err := s.l.Resume(background, s.key, ticket)
			if err == nil {
				s.leave = []func() error{func() error { return k.Unlock(background) }}
			}
			return err
		}
		s.leave = []func() error{resumed}
		return resumed
	},
	"LockAll": func(s *scene) func() error { return func() error { _, err := s.all(); return err } },
	"Unlock of LockAll": func(s *scene) func() error {
		m, err := s.all(core.KeepFor(time.Minute))
		succeed(s.T, err)
		return func() error { return m.Unlock(background) }
	},
}

// A user may lack any right, or lose it: then calls fail, and nothing stays that they have begun, once it is there again.
// Nothing is ever left without an end, and what has not run is not taken for a thing that may have.
func TestWithoutOneRightNothingStays(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, right := range rightsInTheFAQ(t) {
		if right[0] != '+' || slices.Contains([]string{"+ping", "+hello", "+client"}, right) { // for connections
			continue
		}
		t.Run(right[1:], func(t *testing.T) {
			t.Parallel()
			admin := server.Client(t)
			rule := func(rules ...any) {
				t.Helper()
				succeed(t, admin.Do(background, append([]any{"acl", "setuser", "without" + right}, rules...)...).Err())
			}
			rule("on", ">secret", "~*", "&*", "+@all")
			limited := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "without"+right, "secret" })
			l, another := onRedis(t, limited), onRedis(t, admin)
			for name, begins := range acts {
				s := &scene{t, l, another, admin, strings.ReplaceAll(name, " ", "-") + right, nil}
				does := begins(s)
				rule("-" + right[1:])
				failed := does()
				rule(right)
				for len(s.leave) > 0 {
					last := s.leave[len(s.leave)-1]
					s.leave = s.leave[:len(s.leave)-1]
					redistest.Await(t, inTheEnd, fmt.Sprintf("%s (%v): what follows", name, failed), func() bool { return last() == nil })
				}
				redistest.Await(t, inTheEnd, fmt.Sprintf("%s (%v): nothing left", name, failed), func() bool {
					left, err := another.Inspect(background, s.key)
					return err == nil && left.Holders == nil && left.State != core.StateParked && left.State != core.StateOutcomeUnknown && (left.Locked || name != windowed)
				})
				for _, key := range admin.Keys(background, "*"+s.key+"*").Val() {
					if ttl := admin.PTTL(background, key).Val(); ttl == -1 {
						t.Errorf("%s (%v): %s has no end", name, failed, key)
					}
				}
			}
		})
	}
}

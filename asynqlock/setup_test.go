//go:build go1.25

package asynqlock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestDefaultLockerIsLookedUpForEachTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core.SetDefault(nil)
		defer core.SetDefault(nil)
		log := captureLog(t)
		guard := asynqlock.ByPayload("order_id")
		err := guard(forbidden(t)).ProcessTask(background, order("42"))
		guard(forbidden(t)).ProcessTask(background, order("43"))
		wantFailure(t, err)
		wantNot(t, err, asynq.SkipRetry, asynq.RevokeTask) // it may be set later
		if err != nil && !strings.Contains(err.Error(), "SetDefault") {
			t.Errorf("error %q does not say how to mend it", err)
		}
		if text := log.String(); strings.Count(text, "SetDefault") != 1 { // asynq logs no failed task
			t.Errorf("the log says %q, want one line about SetDefault", text)
		}

		core.SetDefault(locktest.New(t))
		if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Error(err)
		}
	})
}

func TestBadSetUpPanics(t *testing.T) {
	key := keyfunc.Payload("order_id")
	window, most := []core.Option{core.KeepFor(time.Minute)}, []core.Option{core.MaxWaiters(1)}
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: "127.0.0.1:1"})
	defer inspector.Close()
	for name, c := range map[string]struct {
		build func()
		want  string
	}{
		"no key":       {func() { asynqlock.New(asynqlock.Config{}) }, "Config.Key is nil"},
		"By nil":       {func() { asynqlock.By(nil) }, "Config.Key is nil"},
		"LastWait":     {func() { asynqlock.New(asynqlock.Config{Key: key, LastWait: -1}) }, "LastWait is negative"},
		"OnBusy":       {func() { asynqlock.New(asynqlock.Config{Key: key, OnBusy: 3}) }, "neither Retry nor Drop"},
		"empty path":   {func() { asynqlock.ByPayload("") }, "path of field names"},
		"bad template": {func() { asynqlock.ByTemplate("{payload.}") }, "ByTemplate"},
		"Once, KeepOne": {func() {
			asynqlock.New(asynqlock.Config{Key: key, Once: true, OnBusy: asynqlock.KeepOne, Options: window})
		}, "Once is for OnBusy Retry or Drop"},
		"Once nil":     {func() { asynqlock.Once(nil) }, "Config.Key is nil"},
		"Once, Owner":  {func() { asynqlock.Once(key, core.KeepFor(time.Minute), core.Owner("o")) }, "Owner is for a single call"},
		"Once, Shared": {func() { asynqlock.Once(key, core.KeepFor(time.Minute), core.Shared()) }, "Once and idempotent requests cannot be combined"},
		"Once, Keys":   {func() { asynqlock.New(asynqlock.Config{Keys: keyfunc.All("k", key), Once: true}) }, "Once is for a Key"},
		"Once, Permits": {func() {
			asynqlock.New(asynqlock.Config{Key: key, Once: true, Permits: func(*asynq.Task) int { return 1 }})
		}, "Once is for a Key"},
		"not Once":     {func() { asynqlock.By(key, core.RefuseUnknown()) }, "RefuseUnknown is for Once"},
		"bad option":   {func() { asynqlock.ByPayload("a", core.Lease(-1)) }, "Lease"},
		"New's option": {func() { asynqlock.ByTemplate("{type}", core.Prefix("x:")) }, "option of New"},
		"Shared, KeepFor": {
			func() { asynqlock.New(asynqlock.Config{Key: key, Shared: isOrder, Options: window}) },
			"Config.Shared cannot be combined with core.KeepFor",
		},
		"Permits, KeepFor": {
			func() { asynqlock.New(asynqlock.Config{Key: key, Permits: permits, Options: window}) },
			"Config.Permits cannot be combined with core.KeepFor",
		},
		"no permits": {func() { asynqlock.New(asynqlock.Config{Key: key, Weight: permits}) }, "a Config.Weight without permits"},
		"two forms":  {func() { asynqlock.New(asynqlock.Config{Key: key, Permits: permits, Shared: isOrder}) }, "leave one of them out"},
		"owner":      {func() { asynqlock.By(key, core.Owner("me")) }, "do not exclude one another"},
		"waits twice": {
			func() {
				asynqlock.New(asynqlock.Config{Key: key, LastWait: time.Minute, Options: []core.Option{core.Wait(time.Second)}})
			},
			"LastWait has no effect",
		},
		"LastWait, Drop": {
			func() { asynqlock.New(asynqlock.Config{Key: key, LastWait: time.Minute, OnBusy: asynqlock.Drop}) }, "LastWait has no effect",
		},
		"Workers":      {func() { asynqlock.New(asynqlock.Config{Key: key, Workers: 10}) }, "are for parking"},
		"checks":       {func() { asynqlock.New(asynqlock.Config{Key: key, TaskCheckInterval: time.Second}) }, "are for parking"},
		"MaxWaiters":   {func() { asynqlock.New(asynqlock.Config{Key: key, Inspector: inspector, Options: most}) }, "MaxWaiters has no effect"},
		"of routes":    {func() { asynqlock.By(key, httplock.Strict()) }, "asynqlock: bad option: Strict is an option of HTTP middleware, such as ginlock.ByParam"},
		"HTTP's":       {func() { asynqlock.By(key, httplock.Locker(nil)) }, "bad option: the adapter's Locker is an option of HTTP middleware, such as ginlock.ByParam: give it there; asynqlock.Locker is"},
		"of bodies":    {func() { asynqlock.By(key, httplock.BufferBody(1)) }, "BufferBody is an option of HTTP middleware"},
		"answers":      {func() { asynqlock.By(key, httplock.OnRefused(nil)) }, "OnRefused of a func(http.ResponseWriter, *http.Request, error) is an option of"},
		"key and keys": {func() { asynqlock.New(asynqlock.Config{Key: key, Keys: keyfunc.All("a", key)}) }, "a Key and Keys"},
		"ByAll nil":    {func() { asynqlock.ByAll(nil) }, "ByAll needs keys"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, c.want) {
					t.Errorf("panic %q, want one that says %q", text, c.want)
				}
			}()
			c.build()
		})
	}
}

func TestKeys(t *testing.T) {
	task := asynq.NewTask("order:pay", []byte(`{"order":{"id":42},"a=b":"c:d"}`))
	for name, c := range map[string]struct {
		build func(opts ...core.Option) asynq.MiddlewareFunc
		want  string
	}{
		"path":    {func(o ...core.Option) asynq.MiddlewareFunc { return asynqlock.ByPayload("order.id", o...) }, "order.id=42"},
		"escaped": {func(o ...core.Option) asynq.MiddlewareFunc { return asynqlock.ByPayload("a=b", o...) }, `a\=b=c\:d`},
		"template": {func(o ...core.Option) asynq.MiddlewareFunc {
			return asynqlock.ByTemplate("{type}:{payload.order.id}", o...)
		}, `order\:pay:42`},
		"any": {func(o ...core.Option) asynq.MiddlewareFunc { return asynqlock.By(keyfunc.TaskType(), o...) }, `taskType=order\:pay`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core.SetDefault(locktest.New(t))
				defer core.SetDefault(nil)
				err := c.build(core.KeepFor(time.Second))(does(func(ctx context.Context) error {
					lock, _ := core.FromContext(ctx)
					if lock.Key() != c.want {
						t.Errorf("key %q, want %q", lock.Key(), c.want)
					}
					if lock.Window() != time.Second {
						t.Error("the option has no effect")
					}
					return nil
				})).ProcessTask(background, task)
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Options of this package are refused elsewhere, with a text that says where they belong.
func TestOptionsOfTasksAreRefusedElsewhere(t *testing.T) {
	l := locktest.New(t)
	for name, option := range map[string]core.Option{"OnBusy": asynqlock.OnBusy(asynqlock.Drop), "Locker": asynqlock.Locker(l)} {
		if _, err := l.Lock(t.Context(), "k", option); err == nil || !strings.Contains(err.Error(), name+" is an option of asynqlock.By") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

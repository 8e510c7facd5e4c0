package asynqlock

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Guards makes middleware that has something in common: see [With]. It is safe for concurrent use. The zero value is With(nil).
type Guards struct{ common Config } // of it the Locker, OnBusy and Options

// withDefault is that of the functions.
var withDefault Guards

// With returns what makes middleware with one Locker and the same options, in place of [core.SetDefault] and options in
// each place:
//
//	locks := asynqlock.With(locker, core.Wait(time.Second))
//	jobs.Use(locks.ByPayload("orderID"))
//
// Its methods are the functions of this package, and those are With(nil)'s: nil means [core.Default], looked up for each task.
// What a middleware is given itself, as an option or in its Config, overrides what it has in common with others; [OnBusy] is
// taken back by an option only. It panics when an option is bad, and the methods do where it cannot be combined with what they are given.
func With(l *core.Locker, opts ...core.Option) *Guards {
	g := Guards{Config{Locker: l}.with(opts)}
	g.common.validate()
	return &g
}

// ByPayload is the function [ByPayload].
func (g *Guards) ByPayload(path string, opts ...core.Option) asynq.MiddlewareFunc {
	return g.By(keyfunc.Payload(path), opts...)
}

// ByTemplate is the function [ByTemplate].
func (g *Guards) ByTemplate(t string, opts ...core.Option) asynq.MiddlewareFunc {
	key, err := keyfunc.TaskTemplate(t)
	if err != nil {
		panic("asynqlock: ByTemplate: " + err.Error())
	}
	return g.By(key, opts...)
}

// By is the function [By].
func (g *Guards) By(key keyfunc.Func[keyfunc.Task], opts ...core.Option) asynq.MiddlewareFunc {
	return g.New(Config{Key: key, Options: opts})
}

// ByAll is the function [ByAll].
func (g *Guards) ByAll(keys keyfunc.Set[keyfunc.Task], opts ...core.Option) asynq.MiddlewareFunc {
	if keys == nil {
		panic(`asynqlock: ByAll needs keys, such as keyfunc.All("account", keyfunc.Payload("from"), keyfunc.Payload("to"))`)
	}
	return g.New(Config{Keys: keys, Options: opts})
}

// New is the function [New].
func (g *Guards) New(cfg Config) asynq.MiddlewareFunc {
	opts := cfg.Options
	cfg.Locker = cmp.Or(cfg.Locker, g.common.Locker)
	cfg.OnBusy = cmp.Or(cfg.OnBusy, g.common.OnBusy)
	cfg.Options = slices.Clone(g.common.Options)
	return middleware(cfg.with(opts))
}

// with returns the configuration with more options: those of this package become fields.
func (cfg Config) with(opts []core.Option) Config {
	lockers, opts := adapter.Split[lockerOption](opts...)
	for _, l := range lockers {
		if cfg.Locker = l.Locker; l.Locker == nil {
			panic("asynqlock: bad option: Locker: the Locker is nil")
		}
	}
	policies, opts := adapter.Split[onBusyOption](opts...)
	for _, policy := range policies {
		cfg.OnBusy = BusyPolicy(policy)
	}
	cfg.Options = append(cfg.Options, opts...)
	return cfg
}

// validate panics when an option is bad.
func (cfg Config) validate() {
	if err := adapter.Validate(cfg.Options...); err != nil {
		panic("asynqlock: bad option: " + strings.ReplaceAll(err.Error(), "core: ", ""))
	}
	if cfg.OnBusy < Retry || cfg.OnBusy > KeepOne {
		panic("asynqlock: OnBusy is neither Retry nor Drop nor KeepOne")
	}
}

type onBusyOption BusyPolicy

func (onBusyOption) String() string {
	return "asynqlock.OnBusy is an option of asynqlock.By and the like: give it there"
}

// OnBusy is Config.OnBusy as an option of the By functions, which panic when policy is unknown.
func OnBusy(policy BusyPolicy) core.Option { return adapter.Option(onBusyOption(policy)) }

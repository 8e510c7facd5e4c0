package guard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const (
	defaultWait       = 3 * time.Second
	defaultMaxWaiters = 256
)

// Request is what an adapter shows of a framework's request.
type Request interface {
	keyfunc.Request
	// Route returns the pattern that the router has matched, empty when it
	// matched none. It is not known where the middleware runs before routing, or
	// before the last of several routers.
	Route() (pattern string, known bool)
}

// Config is what the adapters' Config types have in common.
type Config struct {
	// Locker takes the locks; nil means core.Default, looked up per request.
	Locker *core.Locker
	// Key derives the key.
	Key keyfunc.Func[keyfunc.Request]
	// Param, if set, restricts the guard to routes that declare this parameter.
	Param string
	// Name is what Observers call the locks, unless Options say otherwise.
	Name string
	// Options are for each lock.
	Options []core.Option
	// FailOpen runs the handler without a lock when Redis is unavailable.
	FailOpen bool
	// Status answers a busy lock, 409 if zero.
	Status int
}

// Guard guards handlers. It is safe for concurrent use.
type Guard struct {
	config  Config
	options []core.Option
	warned  sync.Map // routes that do not declare Param
	logged  sync.Map // message: when it was logged last, *atomic.Int64 in Unix ns
}

// New returns a Guard. It panics when the configuration is bad, with a sentence
// that begins with the adapter's name and says how to mend it.
func New(adapter string, cfg Config) *Guard {
	if cfg.Key == nil {
		panic(adapter + `: Config.Key is nil; give it a key function, such as keyfunc.Param("orderID")`)
	}
	if cfg.Status != 0 && (cfg.Status < 400 || cfg.Status > 599) {
		panic(adapter + ": Config.Status must be between 400 and 599, or 0 for 409")
	}
	if err := core.CheckOptions(cfg.Options...); err != nil {
		panic(adapter + ": bad option: " + err.Error())
	}
	own := []core.Option{core.Fallback(core.Wait(defaultWait), core.MaxWaiters(defaultMaxWaiters))}
	if cfg.Name != "" {
		own = append(own, core.Name(cfg.Name))
	}
	return &Guard{config: cfg, options: append(own, cfg.Options...)}
}

// errFailed makes core drop the dedup window after a handler that failed.
var errFailed = errors.New("the handler failed")

// Serve runs next under the lock of the request's key, with the context that
// next must work under; next reports whether it succeeded. Instead of running
// next it may return a Refusal, which the adapter turns into an answer. A panic
// of next goes on unchanged, after the lock was released.
func (g *Guard) Serve(r Request, next func(ctx context.Context) (succeeded bool)) *Refusal {
	refusal := g.serve(r, next)
	if locker := g.locker(); refusal != nil && locker != nil {
		e := core.Event{Kind: core.EventRefused, Status: refusal.Status, Reason: refusal.reason, Err: refusal.Err}
		locker.Notify(r.HTTP().Context(), e, g.options...)
	}
	return refusal
}

// locker is nil where none is set.
func (g *Guard) locker() *core.Locker {
	if g.config.Locker != nil {
		return g.config.Locker
	}
	return core.Default()
}

func (g *Guard) serve(r Request, next func(ctx context.Context) (succeeded bool)) *Refusal {
	ctx := r.HTTP().Context()
	if g.config.Param != "" {
		guarded, refusal := g.declares(r)
		if refusal != nil {
			return refusal
		}
		if !guarded {
			next(ctx)
			return nil
		}
	}
	key, err := g.config.Key(r)
	if errors.Is(err, keyfunc.ErrSkip) {
		next(ctx)
		return nil
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return &Refusal{Status: statusClientGone, Err: err, reason: "canceled"}
		}
		return refuseKey(err)
	}
	locker := g.locker()
	if locker == nil {
		return g.refuseSetup(errNoLocker)
	}

	ran := false
	err = locker.Do(ctx, key, func(ctx context.Context) error {
		ran = true
		if !next(ctx) {
			return errFailed
		}
		return nil
	}, g.options...)
	if ran || err == nil {
		return nil // what went wrong meanwhile, core has logged
	}
	if g.config.FailOpen && errors.Is(err, core.ErrUnavailable) {
		g.log(slog.LevelWarn, "latchkey: redis is unavailable, a request runs without its lock (FailOpen)", err)
		next(ctx)
		return nil
	}
	return g.refuseLock(ctx, err)
}

// declares reports whether the matched route has the parameter to guard by.
func (g *Guard) declares(r Request) (bool, *Refusal) {
	pattern, known := r.Route()
	if known && pattern == "" {
		return false, nil // nothing matched: the framework answers 404 or 405
	}
	if _, declared := r.Param(g.config.Param); declared {
		return true, nil
	}
	if !known {
		return false, g.refuseSetup(errNoRoute)
	}
	if _, again := g.warned.LoadOrStore(pattern, true); !again {
		slog.Warn("latchkey: a route is not guarded, because it does not declare the parameter",
			"route", pattern, "parameter", g.config.Param)
	}
	return false, nil
}

// log writes at most one line a second of each message.
func (g *Guard) log(level slog.Level, message string, err error) {
	now := time.Now().UnixNano()
	entry, _ := g.logged.LoadOrStore(message, new(atomic.Int64))
	at := entry.(*atomic.Int64)
	if last := at.Load(); now-last >= int64(time.Second) && at.CompareAndSwap(last, now) {
		slog.Log(context.Background(), level, message, "error", err)
	}
}

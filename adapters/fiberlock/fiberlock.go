package fiberlock

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var (
	// errFailed makes core drop the dedup window after a handler that failed.
	errFailed   = errors.New("fiberlock: the handler failed")
	errNoLocker = errors.New("fiberlock: no Locker: give one to With, or call core.SetDefault")
)

// guard is what a middleware consists of.
type guard struct {
	Config
	forms adapter.Forms[fiber.Ctx]
	told  sync.Once // a line in the log: of a mistake in the set-up
}

func newGuard(cfg Config) *guard {
	given := 0
	for _, is := range []bool{cfg.Key != nil, cfg.Param != "", cfg.Keys != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		panic("fiberlock: Config needs one of Key, Param and Keys, such as keyfunc.Header(\"X-Order\")")
	}
	if cfg.Param != "" {
		if strings.Trim(cfg.Param, " :{}*+?/") != cfg.Param {
			panic("fiberlock: Param: the name of a path parameter is written without the router's signs, such as \"orderID\"")
		}
		cfg.Key = keyfunc.Param(cfg.Param)
	}
	mustBeGood(cfg.Options)
	g := &guard{Config: cfg, forms: adapter.Forms[fiber.Ctx]{Shared: cfg.Shared, Permits: cfg.Permits, Weight: cfg.Weight}}
	if err := g.forms.Validate(cfg.Options...); err != nil {
		panic("fiberlock: " + err.Error())
	}
	own := []core.Option{adapter.Fallback(core.Wait(3*time.Second), adapter.NoWindow(), core.MaxWaiters(256))}
	if name := g.describe().Name; name != "" {
		own = append(own, core.Name(name))
	}
	g.Options = append(own, cfg.Options...)
	return g
}

// describe says what the key is of, for metrics.
func (g *guard) describe() keyfunc.Description {
	if g.Keys != nil {
		return keyfunc.DescribeSet(g.Keys, nil)
	}
	return keyfunc.Describe(g.Key, nil)
}

// locker is nil where none is set.
func (g *guard) locker() *core.Locker { return cmp.Or(g.Locker, core.Default()) }

// keysOf returns the keys of a request. Texts of fiber are overwritten by the next request, and the names of the locks
// are needed longer: a release goes on in the background when Redis is slow.
func (g *guard) keysOf(r *request) (keys []string, err error) {
	if g.Keys != nil {
		keys, err = g.Keys(r)
	} else {
		var key string
		key, err = g.Key(r)
		keys = []string{key}
	}
	for i := range keys {
		keys[i] = strings.Clone(keys[i])
	}
	switch code, _ := httplock.ReasonOf(err); {
	case r.misplaced != nil && (err != nil || r.twice): // a function that has its key may have tried several names
		return nil, r.misplaced
	case err == nil:
		return keys, r.checkPath()
	case errors.Is(err, keyfunc.ErrNotSetUp) || code != "internal":
		return nil, err
	default: // an error of a function that was written by hand, or ErrSkip, which stays one
		return nil, errors.Join(keyfunc.ErrMalformed, err)
	}
}

// serve runs the rest of the chain under the lock of the request's key.
func (g *guard) serve(c fiber.Ctx) error {
	if g.Skip != nil && g.Skip(c) {
		return c.Next()
	}
	keys, err := g.keysOf(&request{c: c})
	switch locker := g.locker(); {
	case errors.Is(err, keyfunc.ErrSkip):
		return c.Next()
	case err != nil:
		return g.refuse(c, err, g.Options)
	case locker == nil:
		return g.refuse(c, errNoLocker, g.Options)
	default:
		return g.run(c, locker, keys)
	}
}

func (g *guard) run(c fiber.Ctx, locker *core.Locker, keys []string) error {
	opts := g.forms.Options(c, g.Options)
	locks := under(func(ctx context.Context, fn func(context.Context) error) (ran bool, err error) {
		if g.Keys != nil {
			return adapter.DoAll(ctx, locker, keys, fn, opts...)
		}
		return adapter.Do(ctx, locker, keys[0], fn, opts...)
	})
	var failure error
	ran, err := locks(c.Context(), func(ctx context.Context) error {
		if failure = next(c, ctx); failure != nil {
			return failure
		}
		lost := locks.holdForStream(ctx, c)
		if c.Response().StatusCode() >= http.StatusBadRequest || isSilent(c, ctx) {
			return errFailed
		}
		return lost
	})
	switch {
	case !ran:
		return g.refuse(c, err, opts)
	case failure != nil:
		return conceal(c, failure, err)
	default:
		return nil // what went wrong with the lock meanwhile, core has logged
	}
}

// next runs the rest of the chain under ctx. Afterwards the request has its own context
// back, for the middleware outside: the lock's is cancelled by then.
func next(c fiber.Ctx, ctx context.Context) error {
	outer, before := c.Context(), c.Locals(adapter.ContextKey)
	defer func() {
		c.SetContext(outer)
		c.Locals(adapter.ContextKey, before)
	}()
	c.SetContext(ctx)
	if lock, held := core.FromContext(ctx); held {
		c.Locals(adapter.ContextKey, lock) // a lock that is taken with c itself re-enters
	}
	return c.Next()
}

// isSilent reports whether the handler has answered nothing, although its context is over: that is no success. A bare
// status of 200 cannot be told from nothing.
func isSilent(c fiber.Ctx, ctx context.Context) bool {
	r := c.Response()
	return ctx.Err() != nil && r.StatusCode() == http.StatusOK && !r.IsBodyStream() && len(r.Body()) == 0
}

package hertzlock

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var (
	// errFailed makes core drop the dedup window after a handler that failed.
	errFailed   = errors.New("hertzlock: the handler failed")
	errNoLocker = errors.New("hertzlock: no Locker: give one to With, or call core.SetDefault")
)

// guard is what a middleware consists of.
type guard struct {
	Config
	forms  adapter.Forms[*app.RequestContext]
	told   sync.Once   // a line in the log: of a mistake in the set-up
	passed sync.Map    // routes that do not declare Param
	seen   atomic.Bool // one that does
}

func newGuard(cfg Config) *guard {
	given := 0
	for _, is := range []bool{cfg.Key != nil, cfg.Param != "", cfg.Keys != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		panic("hertzlock: Config needs one of Key, Param and Keys, such as keyfunc.Header(\"X-Order\")")
	}
	if cfg.Param != "" {
		if strings.Trim(cfg.Param, " :{}*+?/") != cfg.Param {
			panic("hertzlock: Param: the name of a path parameter is written without the router's signs, such as \"orderID\"")
		}
		cfg.Key = keyfunc.Param(cfg.Param)
	}
	mustBeGood(cfg.Options)
	g := &guard{Config: cfg, forms: adapter.Forms[*app.RequestContext]{Shared: cfg.Shared, Permits: cfg.Permits, Weight: cfg.Weight}}
	if err := g.forms.Validate(cfg.Options...); err != nil {
		panic("hertzlock: " + err.Error())
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

// keysOf returns the keys of a request. Its bytes are overwritten by the next one, and the names of the locks are needed
// longer: a release goes on in the background when Redis is slow. They may consist of them where somebody made a text of
// them without a copy.
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
	case r.misplaced != nil && r.c.FullPath() == "":
		return nil, keyfunc.ErrMissing // no route has matched, and hertz would answer 404
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

// passes reports whether a route does not declare Param, nor anything like it, while another one behind the guard does: Param may be
// misspelt otherwise, and hertz does not tell a handler which routes there are.
func (g *guard) passes(ctx context.Context, c *app.RequestContext) bool {
	if g.Param == "" {
		return false
	}
	for _, p := range c.Params {
		if alike(p.Key, g.Param) {
			if p.Key == g.Param && !g.seen.Load() {
				g.seen.Store(true)
			}
			return false
		}
	}
	route := c.FullPath()
	if route != "" && !g.seen.Load() {
		return false
	}
	if route != "" {
		if _, again := g.passed.LoadOrStore(route, true); !again {
			adapter.LoggerOf(g.locker()).WarnContext(context.WithoutCancel(ctx),
				"latchkey: a route is not guarded, because it does not declare the parameter", "route", route, "parameter", g.Param)
		}
	}
	return true
}

// alike reports whether two names differ in letter case, "_" and "-" only.
func alike(a, b string) bool {
	bare := strings.NewReplacer("_", "", "-", "")
	return strings.EqualFold(bare.Replace(a), bare.Replace(b))
}

// serve runs the rest of the chain under the lock of the request's key.
func (g *guard) serve(ctx context.Context, c *app.RequestContext) {
	if g.Skip != nil && g.Skip(c) || g.passes(ctx, c) {
		c.Next(ctx)
		return
	}
	keys, err := g.keysOf(&request{ctx: ctx, c: c})
	switch locker := g.locker(); {
	case errors.Is(err, keyfunc.ErrSkip):
		c.Next(ctx)
	case err != nil:
		g.refuse(ctx, c, err, g.Options)
	case locker == nil:
		g.refuse(ctx, c, errNoLocker, g.Options)
	default:
		g.run(ctx, c, locker, keys)
	}
}

func (g *guard) run(ctx context.Context, c *app.RequestContext, locker *core.Locker, keys []string) {
	opts := g.forms.Options(c, g.Options)
	locks := under(func(ctx context.Context, fn func(context.Context) error) (ran bool, err error) {
		if g.Keys != nil {
			return adapter.DoAll(ctx, locker, keys, fn, opts...)
		}
		return adapter.Do(ctx, locker, keys[0], fn, opts...)
	})
	ran, err := locks(ctx, func(ctx context.Context) error {
		failure := next(ctx, c)
		return cmp.Or(failure, locks.holdForStream(ctx, c))
	})
	if !ran {
		g.refuse(ctx, c, err, opts)
	} // else the handler has answered; what went wrong with the lock, core has logged
}

// next runs the rest of the chain under ctx, and reports whether it has failed.
func next(ctx context.Context, c *app.RequestContext) error {
	failures := len(c.Errors)
	c.Next(ctx)
	if c.Response.StatusCode() >= http.StatusBadRequest || len(c.Errors) > failures || isSilent(ctx, c) {
		return errFailed
	}
	return nil
}

// isSilent reports whether the handler has answered nothing, although its context is over: that is no success. A bare
// status of 200 cannot be told from nothing.
func isSilent(ctx context.Context, c *app.RequestContext) bool {
	r := &c.Response
	return ctx.Err() != nil && r.StatusCode() == http.StatusOK && !r.IsBodyStream() && len(r.Body()) == 0
}

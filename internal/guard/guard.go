// Package guard decides, once for all HTTP frameworks, whether a request may
// run: it derives the key, takes the lock, runs the handler, releases, or says
// how to refuse. The adapters only translate.
//
// What guards have in common is in with.go. A request goes through guard.go: by key.go and param.go to its key, by
// outcome.go under the lock, where writer.go watches the answer; or to its refusal. The files idempotency… process requests once,
// and check… say what is guarded before there is a request.
package guard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/contention"
	"github.com/latchkey-go/latchkey/internal/limitedlog"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const (
	defaultWait       = 3 * time.Second
	defaultMaxWaiters = 256
)

// Guard guards handlers. It is safe for concurrent use.
type Guard struct {
	config  Config // with Keys in any case
	all     bool   // there may be several
	options []core.Option
	reads   keyfunc.Description
	warned  sync.Map     // routes that do not declare Param
	behind  atomic.Int32 // whether one does
	log     limitedlog.Log
	late    sync.Once // a line in the log: a guard that came back late
}

// New returns a Guard with what it has in common with others, and who answers its refusals, nil for the problem body, to be
// asked for each: answer, or what the options say, or everybody's. It panics when the configuration is
// bad, with a sentence that begins with the adapter's name and says how to fix it.
func New[F any](name string, common Common[F], cfg Config, everybodys *OnRefused[F], answer F) (g *Guard, answerer func() F) {
	own := common.of(name, cfg, answer)
	return newGuard(name, own.config), func() F { return everybodys.by(own.answer) }
}

func newGuard(name string, cfg Config) *Guard {
	fallback := []core.Option{core.Wait(defaultWait), adapter.NoWindow(), core.MaxWaiters(defaultMaxWaiters)}
	options := cfg.Options
	if cfg.Idempotent != nil {
		cfg = idempotent(name, cfg)
		fallback[0] = core.NoWait()
		options = append(options[:len(options):len(options)], adapter.Attempt(noRequest, cfg.Idempotent.StoreFor, false))
	}
	cfg.validate(name)
	g := &Guard{all: cfg.Keys != nil && cfg.Idempotent == nil}
	switch {
	case cfg.Param != "":
		cfg.Keys = alone(keyfunc.Param(cfg.Param))
	case cfg.Key != nil:
		cfg.Keys = alone(cfg.Key)
	}
	validate(name, options)
	if err := cfg.Forms.Validate(cfg.Options...); err != nil {
		panic(name + ": " + err.Error())
	}
	own := []core.Option{adapter.Fallback(fallback...)}
	reads := keyfunc.DescribeSet(cfg.Keys, nil)
	if reads.Name != "" {
		own = append(own, core.Name(reads.Name))
	}
	cfg.About = g.about(cfg, reads)
	if cfg.Idempotent != nil && cfg.Idempotent.Fingerprint != nil {
		reads.Names = append(reads.Names, keyfunc.Describe(cfg.Idempotent.Fingerprint, nil).Names...)
	}
	g.config, g.options, g.reads = cfg, append(own, cfg.Options...), reads
	g.log.Logger = func() *slog.Logger { return adapter.LoggerOf(g.locker()) }
	return g
}

// noRequest is a digest to check options with.
const noRequest = "0000000000000000"

// Serve runs next under the lock of the request's key, with the context that
// next must work under. Instead of running next it may return a Refusal, which the
// adapter turns into an answer. A panic of next goes on unchanged, after the lock was
// released. Where the framework's context may be another request's by then, Serve does not return: it ends
// the goroutine, which is not the one that the framework serves a request in.
func (g *Guard) Serve(r Request, next Next) *Refusal {
	began := time.Now()
	in := g.receive(r)
	defer in.over.Store(true)
	refusal := g.serve(in, next)
	in.End()
	if refusal == nil || refusal.stored != nil {
		return refusal
	}
	refusal.waited = time.Since(began)
	return g.refuse(in, refusal)
}

// Misplaced is the refusal of a request that middleware behind the guard has led to
// another route.
func (g *Guard) Misplaced(r Request) *Refusal { return g.refuse(r, misconfigured.because(errNoRoute)) }

// refuse completes a refusal, and reports it to Observers and the log.
func (g *Guard) refuse(r Request, refusal *Refusal) *Refusal {
	refusal.Part = g.partOf(refusal)
	g.report(r, refusal)
	if g.config.Status != 0 && refusal.isBusy() {
		refusal.Status = g.config.Status
	}
	refuseOuter(r)
	if locker := g.locker(); locker != nil {
		e := core.Event{Kind: core.EventRefused, Status: refusal.Status, Reason: refusal.event, Err: refusal.cause}
		opts := refusal.options
		if opts == nil {
			opts = g.options
		}
		adapter.Notify(r.HTTP().Context(), locker, e, opts...)
	}
	return refusal
}

// report logs why a request is refused. Of what came from the client only a key is in it, of a
// lock that was waited for.
func (g *Guard) report(r Request, refusal *Refusal) {
	ctx := r.HTTP().Context()
	route := routeText(r)
	switch refusal.Status {
	case http.StatusInternalServerError:
		g.log.Limited(ctx, slog.LevelError, "a request was refused because the middleware is misconfigured",
			"route", route, "error", refusal.cause)
	case http.StatusConflict, http.StatusTooManyRequests:
		if locker := g.locker(); locker != nil && refusal.isBusy() && refusal.waited >= contention.LongWait {
			contention.WriteInVain(ctx, &g.log, locker, "a request has waited for its lock in vain", refusal.cause, "route", route)
		}
	case http.StatusUnprocessableEntity:
		g.log.Limited(ctx, slog.LevelInfo, "a request was refused because another one was sent with the same key",
			"key", contention.KeyOf(refusal.cause), "route", route,
			"part", strings.Join(keyfunc.Describe(g.config.Idempotent.Key, nil).Names, ", "), "compared", g.config.Idempotent.compared())
	case http.StatusServiceUnavailable:
		g.log.Limited(ctx, slog.LevelWarn, "requests are refused",
			"key", contention.KeyOf(refusal.cause), "route", route, "error", refusal.cause)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		kind := "a request was refused because its key cannot be used"
		if refusal.Code == "missing" {
			kind = "a request was refused because it has no key"
		}
		g.log.Limited(ctx, slog.LevelInfo, kind, "route", route, "part", g.partText(refusal), "reason", refusal.Detail)
	}
}

// locker is nil where none is set.
func (g *Guard) locker() *core.Locker {
	if g.config.Locker != nil {
		return g.config.Locker
	}
	return core.Default()
}

// serve has a request pass, runs it under its lock, or says how to refuse it.
func (g *Guard) serve(r *Received, next Next) *Refusal {
	ctx, locker := r.ctx, g.locker()
	keys, refusal := g.keysOf(r)
	switch {
	case refusal != nil:
		return refusal
	case !r.IsOurs(): // the body came late
		return clientGone.because(errNotOurs)
	case keys == nil:
		next(ctx, &Outcome{})
		return nil
	case locker == nil:
		return misconfigured.because(errNoLocker)
	case g.config.Idempotent != nil:
		return g.once(r, keys[0], locker, next)
	}
	opts := g.config.Forms.Options(r.Request, g.options)
	run := func(ctx context.Context) error {
		if !r.IsOurs() {
			return errNotOurs
		}
		return g.run(ctx, r, next)
	}
	var ran bool
	var err error
	if g.all {
		ran, err = adapter.DoAll(ctx, locker, keys, run, opts...)
	} else {
		ran, err = adapter.Do(ctx, locker, keys[0], run, opts...)
	}
	if ran && !errors.Is(err, errNotOurs) {
		return nil // what went wrong meanwhile, core has logged
	}
	if g.config.FailOpen && errors.Is(err, core.ErrUnavailable) && r.IsOurs() {
		for _, key := range keys {
			g.log.Limited(ctx, slog.LevelWarn, "redis is unavailable, a request runs without its lock (FailOpen)",
				"key", key, "route", routeText(r), "error", err)
		}
		next(ctx, &Outcome{})
		return nil
	}
	return g.noLock(ctx, err, opts)
}

// noLock is the answer to a request for which the lock could not be taken.
func (g *Guard) noLock(ctx context.Context, err error, opts []core.Option) *Refusal {
	if busy := (*core.BusyError)(nil); errors.Is(ctx.Err(), context.Canceled) && !errors.As(err, &busy) {
		return clientGone.because(err)
	}
	refusal := refusalFor(err)
	if refusal.event != misconfigured.event { // or an option may be bad
		refusal.options = opts
	}
	return refusal
}

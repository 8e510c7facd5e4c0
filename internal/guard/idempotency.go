package guard

import (
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Idempotency says how requests are processed once.
type Idempotency idempotency

// idempotency has the fields, which the adapters' Idempotency types declare again, so that users see what each means.
type idempotency = struct {
	Scope         keyfunc.Func[keyfunc.Request]
	Key           keyfunc.Func[keyfunc.Request]
	Fingerprint   keyfunc.Func[keyfunc.Request]
	Optional      bool
	StoreFor      time.Duration
	MaxBytes      int
	StoreIf       func(status int) bool
	Seal          cipher.AEAD
	RefuseUnknown bool
}

func ownIdempotency[I ~idempotency](adapters *I) *Idempotency {
	if adapters == nil {
		return nil
	}
	own := Idempotency(*adapters)
	return &own
}

const (
	idempotencyKey  = "Idempotency-Key"
	maxKeyBytes     = 255
	defaultStoreFor = 24 * time.Hour
	defaultMaxBytes = 64 << 10 // of the body of an answer
	defaultRequest  = 1 << 20  // bytes of the body of a request
	idempotentNames = "idempotent:"
)

// A refusal by the handler is cheap to provoke, and to make again: it is stored for a shorter time,
// and a long one not at all.
const (
	longestRefusal = time.Hour
	maxRefusal     = 4 << 10 // bytes of its body
)

// Idempotent is the configuration of a guard that processes requests once for each scope. It
// panics when scope is nil.
func Idempotent(adapter string, scope keyfunc.Func[keyfunc.Request]) Config {
	if scope == nil {
		panic(adapter + noScope)
	}
	return Config{Idempotent: &Idempotency{Scope: scope}}
}

const noScope = `: Idempotent needs a scope, such as keyfunc.Value("userID"): whose key it is, as authentication has found out`

// idempotent returns the configuration with the defaults of its Idempotent, and what follows from
// it. It panics when something is bad.
func idempotent(name string, cfg Config) Config {
	i := *cfg.Idempotent
	switch {
	case i.Scope == nil:
		panic(name + noScope)
	case cfg.Key != nil || cfg.Keys != nil || cfg.Param != "":
		panic(name + ": Config.Idempotent has a key of its own; leave Key, Keys and Param out")
	case cfg.FailOpen:
		panic(name + ": FailOpen cannot be combined with Idempotent: without Redis it is unknown whether a request has come before")
	case cfg.Forms.Shared != nil || cfg.Forms.Permits != nil:
		panic(name + ": Shared and Permits cannot be combined with Idempotent: a request is processed by one at a time")
	case cfg.BufferBody < 0:
		panic(name + ": a negative BufferBody cannot be combined with Idempotent, which compares bodies")
	case i.StoreFor < 0 || i.StoreFor > 0 && i.StoreFor < time.Second:
		panic(name + ": Idempotency.StoreFor must be at least 1s, or 0 for 24h")
	case i.MaxBytes < 0:
		panic(name + ": Idempotency.MaxBytes must not be negative; 0 stands for 64 KiB")
	}
	i.StoreFor = cmp.Or(i.StoreFor, defaultStoreFor)
	i.MaxBytes = cmp.Or(i.MaxBytes, defaultMaxBytes)
	cfg.BufferBody = cmp.Or(cfg.BufferBody, defaultRequest)
	if i.StoreIf == nil {
		i.StoreIf = isFinal
	}
	cfg.ownKey = i.Key
	if i.Key == nil {
		i.Key, cfg.ownKey = headerKey, headerValue
	}
	key := i.Key
	if i.Optional {
		key = keyfunc.Optional(key)
	}
	cfg.Keys = alone(keyfunc.Join(i.Scope, key))
	cfg.Idempotent = &i
	return cfg
}

// isFinal reports whether an answer of that status would be the same if the request was
// processed again.
func isFinal(status int) bool {
	switch status {
	case http.StatusPaymentRequired, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity:
		return true
	}
	return status < http.StatusBadRequest
}

const errTwice setupError = "Idempotent inside of Idempotent, of the same scope and key: leave one of them out"

// once runs next unless there is a stored answer to the request. id is scope and key.
func (g *Guard) once(r *Received, id string, locker *core.Locker, next Next) *Refusal {
	request, err := g.fingerprint(r, id)
	switch {
	case isSetup(err):
		return misconfigured.because(err)
	case err != nil:
		return refusalForKey(err)
	}
	i := g.config.Idempotent
	key := lockKey(id)
	opts := append(g.options[:len(g.options):len(g.options)], adapter.Attempt(request, i.StoreFor, i.RefuseUnknown))
	lock, err := locker.Lock(r.ctx, key, opts...)
	if err != nil {
		return g.noAttempt(r, key, request, err, opts)
	}
	if !r.IsOurs() {
		return clientGone.because(errors.Join(errNotOurs, lock.Abort(r.ctx)))
	}
	number := adapter.AttemptOf(lock)
	if number > 1 {
		g.log.Limited(r.ctx, slog.LevelWarn, "a request is processed again, because the outcome of its last attempt is unknown",
			"key", key, "route", routeText(r), "attempt", number)
	}
	own, _ := g.config.ownKey(r) // it is a part of id
	o := &Outcome{recording: &recording{max: i.MaxBytes, bare: r.HTTP().Method == http.MethodHead}}
	inner := o.within(context.WithValue(lock.Context(), attemptKey{}, attempt{number, own}), r)
	o.recording.head.outside = o.header.Clone()
	returned := false
	defer func() { g.conclude(lock, o, returned, key, request) }()
	next(inner, o)
	returned = true
	return nil
}

// errUnanswered is why it is unknown what a handler has done.
var errUnanswered = errors.New("latchkey: no answer was seen before the context of the request was over")

// conclude unlocks, and stores the answer if there is one to store. After a panic the answer is
// not whole, but the work may have been done if an answer of success had begun.
func (g *Guard) conclude(lock *core.Lock, o *Outcome, returned bool, key, request string) {
	i, ctx := g.config.Idempotent, lock.Context()
	o.Passes()
	status, begun := o.final()
	storeFor, refuses := i.StoreFor, status >= http.StatusBadRequest
	if refuses {
		storeFor = min(storeFor, longestRefusal)
	}
	noAnswer := o.refused.Load() || !begun && (o.failed || !returned) || refuses && o.recording.isLong
	var err error
	switch {
	case o.isUnknown(ctx, returned):
		err = cmp.Or(lock.Unlock(ctx), errUnanswered)
	case noAnswer || status >= http.StatusInternalServerError || !i.StoreIf(status):
		err = lock.Abort(ctx)
	default:
		var text []byte
		if returned {
			text = o.recording.encode(status, o.header)
		}
		err = adapter.Answer(ctx, lock, i.seal(text, key, request), storeFor)
		if text == nil { // said when the lock is released: a log may block
			why := "it was streamed or hijacked, or not all of it was seen, or its header is longer than 8 KiB"
			if o.recording.isLong {
				why = "its body is longer than MaxBytes"
			}
			g.log.Limited(ctx, slog.LevelWarn, "an answer cannot be stored: whoever repeats the request gets 409",
				"key", key, "status", status, "why", why)
		}
	}
	o.recording.end()
	if err != nil && !errors.Is(err, core.ErrNotHeld) {
		g.log.Limited(ctx, slog.LevelWarn, "an answer was not stored, so that the outcome of the request is unknown", "key", key, "error", err)
	}
}

// noAttempt is the answer to a request for which no attempt was made: the stored one, or a refusal.
func (g *Guard) noAttempt(r *Received, key, request string, err error, opts []core.Option) *Refusal {
	if text, ok := adapter.AnswerOf(err); ok {
		stored, failure := g.config.Idempotent.open(text, key, request)
		switch {
		case failure != nil:
			g.log.Limited(r.ctx, slog.LevelError, "a stored answer cannot be read", "key", key, "route", routeText(r), "error", failure)
		case stored != nil:
			stored.safe = IsSafe(r.HTTP())
			return &Refusal{Status: stored.Status, stored: stored}
		}
		err = errNotReplayable
	}
	if busy := (*core.BusyError)(nil); errors.As(err, &busy) && len(busy.Circle) == 1 {
		return misconfigured.because(errTwice)
	}
	if errors.Is(err, adapter.ErrOutcomeUnknown) {
		g.log.Limited(r.ctx, slog.LevelWarn, "a request is refused, because the outcome of its last attempt is unknown",
			"key", key, "route", routeText(r))
	}
	refusal := g.noLock(r.ctx, err, opts)
	if refusal.isBusy() {
		refusal.title = "A request is outstanding for this Idempotency-Key"
	}
	return refusal
}

// lockKey is the key of the lock of a request, from its scope and key.
func lockKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return idempotentNames + hex.EncodeToString(sum[:])
}

// LockKey is the key of the lock of a request with an Idempotency-Key, in quotes or not. scope is
// what its key function returns, such as value.userID=42.
func LockKey(scope, key string) (string, error) {
	own, err := headerKey(headerOf{http: &http.Request{Header: http.Header{idempotencyKey: {key}}}})
	return lockKey(scope + ":" + own), err
}

// headerOf is a request of which a key function sees the header only.
type headerOf struct {
	keyfunc.Request
	http *http.Request
}

func (r headerOf) HTTP() *http.Request { return r.http }

type attemptKey struct{}

// attempt is at the request under whose lock a handler runs.
type attempt struct {
	number int
	key    string
}

// Attempt returns the number of the attempt at the request under whose lock ctx is, from 1 on.
// It is 0 where there is none.
func Attempt(ctx context.Context) int {
	a, _ := ctx.Value(attemptKey{}).(attempt)
	return a.number
}

// IdempotencyKey returns the key of that request.
func IdempotencyKey(ctx context.Context) (key string, ok bool) {
	a, ok := ctx.Value(attemptKey{}).(attempt)
	return a.key, ok
}

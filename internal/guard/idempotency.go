package guard

import (
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Idempotency is how requests count once, and later ones get the first answer again. The adapters
// declare it anew, so that a user sees its fields, and say what each of them means.
type Idempotency struct {
	Scope         keyfunc.Func[keyfunc.Request]
	Key           keyfunc.Func[keyfunc.Request]
	Optional      bool
	StoreFor      time.Duration
	MaxBytes      int
	Headers       []string
	StoreIf       func(status int) bool
	Seal          cipher.AEAD
	RefuseUnknown bool
}

const (
	idempotencyKey  = "Idempotency-Key"
	maxKeyBytes     = 255
	defaultKeep     = 24 * time.Hour
	defaultAnswer   = 64 << 10
	defaultRequest  = 1 << 20 // bytes of a body
	idempotentNames = "idempotent:"
)

// An answer that says no is cheap to have, and to make again: it is kept for a shorter time, and a longer
// one not at all.
const (
	longestRefusal = time.Hour
	maxRefusal     = 4 << 10 // bytes of its body
)

// keptHeaders are what an answer needs to be understood. Content-Encoding is among them where
// it is of the body that is kept.
var keptHeaders = []string{"Content-Type", "Content-Language", "Content-Encoding", "Location", "Content-Location", "Etag", "Last-Modified", "Link"}

// neverKept are of the one exchange, or secrets of it.
var neverKept = []string{
	"Set-Cookie", "Www-Authenticate", "Proxy-Authenticate", "Authentication-Info", "Proxy-Authentication-Info", "Date", "Age",
	"Connection", "Keep-Alive", "Upgrade", "Trailer", "Transfer-Encoding", "Content-Length", "Retry-After", replayedHeader,
}

// Idempotent is the configuration of a guard that has requests count once for each scope. It
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
		panic(name + ": FailOpen does not go with Idempotent: without Redis nobody knows whether a request has come before")
	case cfg.Forms.Shared != nil || cfg.Forms.Permits != nil:
		panic(name + ": Shared and Permits do not go with Idempotent: a request is processed by one at a time")
	case cfg.BufferBody < 0:
		panic(name + ": a negative BufferBody does not go with Idempotent, which compares bodies")
	case i.StoreFor < 0 || i.StoreFor > 0 && i.StoreFor < time.Second:
		panic(name + ": Idempotency.StoreFor must be at least 1s, or 0 for 24h")
	case i.MaxBytes < 0:
		panic(name + ": Idempotency.MaxBytes must not be negative; 0 stands for 64 KiB")
	}
	if i.StoreFor == 0 {
		i.StoreFor = defaultKeep
	}
	if i.MaxBytes == 0 {
		i.MaxBytes = defaultAnswer
	}
	if i.StoreIf == nil {
		i.StoreIf = isFinal
	}
	if cfg.BufferBody == 0 {
		cfg.BufferBody = defaultRequest
	}
	kept := slices.Clone(keptHeaders)
	for _, field := range i.Headers {
		field = http.CanonicalHeaderKey(field)
		if slices.Contains(neverKept, field) {
			panic(name + ": Idempotency.Headers: " + field + " is of one answer only, and never kept")
		}
		kept = append(kept, field)
	}
	i.Headers = kept
	if i.Key == nil {
		i.Key = headerKey
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

// keeps reports whether answers of a status are kept.
func (i *Idempotency) keeps(status int) bool {
	return status < http.StatusInternalServerError && i.StoreIf(status)
}

const errTwice setupError = "Idempotent inside of Idempotent, of the same scope and key: leave one of them out"

// once runs next unless an earlier attempt at the request has an answer. id is scope and key.
func (g *Guard) once(r Request, id string, locker *core.Locker, next Next) *Refusal {
	request, err := fingerprint(r.HTTP(), id)
	switch {
	case isSetup(err):
		return setup(err)
	case err != nil:
		return refusalForKey(err)
	}
	i := g.config.Idempotent
	sum := sha256.Sum256([]byte(id))
	key := idempotentNames + hex.EncodeToString(sum[:])
	opts := append(g.options[:len(g.options):len(g.options)], adapter.Attempt(request, i.StoreFor, i.RefuseUnknown))
	ctx := r.HTTP().Context()
	lock, err := locker.Lock(ctx, key, opts...)
	if err != nil {
		return g.notRun(ctx, key, request, err, opts)
	}
	number := adapter.AttemptOf(lock)
	if number == 0 {
		_ = lock.Unlock(ctx)
		return setup(errTwice)
	}
	if number > 1 {
		g.log(slog.LevelWarn, "latchkey: a request is processed again, for it is unknown what became of its last attempt", "key", key, "attempt", number)
	}
	answer := &Answer{record: &record{max: i.MaxBytes, headers: i.Headers, bare: r.HTTP().Method == http.MethodHead}}
	inner := answer.within(context.WithValue(lock.Context(), attemptKey{}, number), r)
	answer.record.encoded = answer.header.Get("Content-Encoding") != ""
	returned := false
	defer func() { g.conclude(lock, answer, returned, key, request) }()
	next(inner, answer)
	returned = true
	return nil
}

// conclude unlocks, and leaves the answer if there is one to keep. After a panic it is not
// whole, but the work may have been done if one of success had begun.
func (g *Guard) conclude(lock *core.Lock, a *Answer, returned bool, key, request string) {
	i, ctx := g.config.Idempotent, lock.Context()
	status, begun := a.final()
	keep, refuses := i.StoreFor, status >= http.StatusBadRequest
	if refuses {
		keep = min(keep, longestRefusal)
	}
	var err error
	if a.refused.Load() || !begun && (a.failed || !returned) || !i.keeps(status) || refuses && a.record.isLong {
		err = lock.Abort(ctx)
	} else {
		var text []byte
		if returned && !a.record.incomplete {
			text = a.record.encode(status, a.header)
		}
		err = adapter.Answer(ctx, lock, i.seal(text, key, request), keep)
	}
	a.record.end()
	if err != nil && !errors.Is(err, core.ErrNotHeld) {
		g.log(slog.LevelWarn, "latchkey: an answer was not kept, so it is unknown what became of the request", "key", key, "error", err)
	}
}

// notRun is the answer to a request for which there was no attempt: that of an earlier one, or
// a refusal.
func (g *Guard) notRun(ctx context.Context, key, request string, err error, opts []core.Option) *Refusal {
	if text, ok := adapter.AnswerOf(err); ok {
		kept, failure := g.config.Idempotent.open(text, key, request)
		switch {
		case failure != nil:
			g.log(slog.LevelError, "latchkey: a stored answer cannot be read", "key", key, "error", failure)
		case kept != nil:
			return &Refusal{Status: kept.Status, kept: kept}
		}
		err = errNotReplayable
	}
	if errors.Is(err, adapter.ErrOutcomeUnknown) {
		g.log(slog.LevelWarn, "latchkey: a request is refused, for it is unknown what became of its last attempt", "key", key)
	}
	refusal := g.refusalOf(ctx, err, opts)
	if refusal.isBusy() {
		refusal.problemOf("A request is outstanding for this Idempotency-Key")
	}
	return refusal
}

type attemptKey struct{}

// Attempt returns the number of the attempt at the request under whose lock ctx is, from 1 on.
// It is 0 where there is none.
func Attempt(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return n
}

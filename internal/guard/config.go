package guard

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Config is what a guard needs of the fields of an adapter's Config, which says what each means, and more.
type Config struct {
	Locker     *core.Locker                  // nil: core.Default, looked up for each request
	Key        keyfunc.Func[keyfunc.Request] // or Param, Keys or Idempotent
	Param      string
	Keys       keyfunc.Set[keyfunc.Request]
	Idempotent *Idempotency
	About      string // by what is locked, for people; empty: what Key reads
	Options    []core.Option
	Forms      adapter.Forms[Request] // in which form a request's lock is taken
	FailOpen   bool
	Status     int
	BufferBody int64
	Strict     bool

	ownKey keyfunc.Func[keyfunc.Request] // of an idempotent request, without its scope, as handlers get it
}

// AdapterConfig has the fields of an adapter's Config, which declares them again, so that users see what each means. A Config
// converts to it, and does not compile with a field more or less. C is the framework's request, I the adapter's Idempotency, and F
// answers a refusal.
type AdapterConfig[C any, I ~idempotency, F any] struct {
	Locker     *core.Locker
	Key        keyfunc.Func[keyfunc.Request]
	Param      string
	Keys       keyfunc.Set[keyfunc.Request]
	Idempotent *I
	Strict     bool
	Options    []core.Option
	Shared     func(C) bool
	Permits    func(C) int
	Weight     func(C) int
	Skip       func(C) bool
	OnRefused  F
	FailOpen   bool
	Status     int
	BufferBody int64
}

// Config returns what is the guard's of the fields. of returns the framework's request.
func (cfg AdapterConfig[C, I, F]) Config(of func(Request) C) Config {
	return Config{
		Locker:     cfg.Locker,
		Key:        cfg.Key,
		Param:      cfg.Param,
		Keys:       cfg.Keys,
		Idempotent: ownIdempotency(cfg.Idempotent),
		Options:    cfg.Options,
		Forms:      adapter.Forms[Request]{Shared: asked(cfg.Shared, of), Permits: asked(cfg.Permits, of), Weight: asked(cfg.Weight, of)},
		FailOpen:   cfg.FailOpen,
		Status:     cfg.Status,
		BufferBody: cfg.BufferBody,
		Strict:     cfg.Strict,
	}
}

// validate panics when the fields are bad, or cannot be combined.
func (cfg Config) validate(name string) {
	switch {
	case cfg.Param != "" && cfg.Key != nil:
		panic(name + ": Config has a Param and a Key; set one of them")
	case cfg.Keys != nil && (cfg.Param != "" || cfg.Key != nil):
		panic(name + ": Config has Keys and a Key or Param as well; set one of them")
	case cfg.Keys == nil && cfg.Param == "" && cfg.Key == nil:
		panic(name + `: Config.Key is nil; set Config.Param, or give Config.Key a key function, such as keyfunc.Header("Idempotency-Key")`)
	case cfg.Strict && cfg.Param == "":
		panic(name + ": Strict is about routes that do not declare a path parameter: it needs ByParam, or Config.Param")
	case cfg.Status != 0 && !isError(cfg.Status):
		panic(name + ": Config.Status must be between 400 and 599, or 0 for 409")
	case cfg.Param != "":
		mustName(name, "Config.Param %s", cfg.Param)
	}
}

// ByParam is the configuration of a guard by path parameter: of exactly the
// routes that declare it. It panics when no parameter can have that name.
func ByParam(adapter, name string) Config {
	mustName(adapter, "ByParam(%s)", name)
	return Config{Param: name}
}

// ByAll is the configuration of a guard by several keys. It panics when keys is nil.
func ByAll(adapter string, keys keyfunc.Set[keyfunc.Request]) Config {
	if keys == nil {
		panic(adapter + `: ByAll needs keys, such as keyfunc.All("account", keyfunc.JSON("from"), keyfunc.JSON("to"))`)
	}
	return Config{Keys: keys}
}

// ByTemplate is the configuration of a guard by template. It panics when the
// template is bad.
func ByTemplate(adapter, t string) Config {
	key, err := keyfunc.Template(t)
	if err != nil {
		panic(adapter + ": ByTemplate: " + err.Error())
	}
	return Config{About: "template " + strconv.Quote(t), Key: key}
}

func asked[C, T any](f func(C) T, of func(Request) C) func(Request) T {
	if f == nil {
		return nil
	}
	return func(r Request) T { return f(of(r)) }
}

// option is a field of Config, as an option of the adapters' By functions. Where it is given to
// a lock by mistake, or to asynqlock, the error says where it belongs.
type option interface {
	set(*Config) error
	String() string
}

func ofMiddleware(name string) string {
	return name + " is an option of HTTP middleware, such as ginlock.ByParam: give it there"
}

func (strict) String() string     { return ofMiddleware("Strict") }
func (bufferBody) String() string { return ofMiddleware("BufferBody") }
func (failOpen) String() string   { return ofMiddleware("FailOpen") }
func (status) String() string     { return ofMiddleware("Status") }
func (locker) String() string {
	return ofMiddleware("the adapter's Locker") + "; asynqlock.Locker is that of tasks"
}

type (
	strict     struct{}
	failOpen   struct{}
	locker     struct{ *core.Locker }
	status     int
	bufferBody int64
)

func field(o option) core.Option { return adapter.Option(o) }

// Strict is Config.Strict as an option.
func Strict() core.Option { return field(strict{}) }

// FailOpen is Config.FailOpen as an option.
func FailOpen() core.Option { return field(failOpen{}) }

// Status is Config.Status as an option. New panics when it is no error status.
func Status(code int) core.Option { return field(status(code)) }

// Locker is Config.Locker as an option. New panics when it is nil.
func Locker(l *core.Locker) core.Option { return field(locker{l}) }

// BufferBody is Config.BufferBody as an option.
func BufferBody(n int64) core.Option { return field(bufferBody(n)) }

func (strict) set(c *Config) error {
	c.Strict = true
	return nil
}

func (failOpen) set(c *Config) error {
	c.FailOpen = true
	return nil
}

func (o status) set(c *Config) error {
	if !isError(int(o)) {
		return fmt.Errorf("Status(%d): give it one between 400 and 599", int(o))
	}
	c.Status = int(o)
	return nil
}

func isError(status int) bool { return status >= 400 && status <= 599 }

func (o locker) set(c *Config) error {
	if o.Locker == nil {
		return errors.New("Locker(nil): give it a Locker, or leave it out and call core.SetDefault")
	}
	c.Locker = o.Locker
	return nil
}

func (o bufferBody) set(c *Config) error {
	c.BufferBody = int64(o)
	return nil
}

// OnRefused has the function that answers the refusals of an adapter in place of the problem body.
// F is the adapter's type of such a function. The zero value is ready, and safe for concurrent use.
type OnRefused[F any] struct{ everywhere atomic.Pointer[F] }

// Set has f answer for all guards that have nothing of their own; a nil f takes it away.
func (o *OnRefused[F]) Set(f F) { o.everywhere.Store(&f) }

// Option has f answer for one guard.
func (*OnRefused[F]) Option(f F) core.Option { return adapter.Option(onRefused[F]{f}) }

type onRefused[F any] struct{ own F }

func (o onRefused[F]) String() string {
	return fmt.Sprintf("OnRefused of a %T is an option of the middleware of its own package: give it there", o.own)
}

// by returns who answers for a guard with f as its own; nil: the problem body.
func (o *OnRefused[F]) by(f F) F {
	if set := o.everywhere.Load(); set != nil && isNil(f) {
		return *set
	}
	return f
}

func isNil(function any) bool { return reflect.ValueOf(function).IsNil() }

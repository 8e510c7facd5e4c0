package conformance_test

import (
	"net/http"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// framework builds a server from routes, with one adapter.
type framework struct {
	name      string
	build     func(routes ...route) http.Handler
	hasErrors bool // handlers can return errors
}

// route is a handler behind one middleware. Patterns are in net/http's form:
// "/orders/{orderID}/pay".
type route struct {
	method, pattern string
	guards          []guarding
	handle          http.HandlerFunc
	fail            error                                           // what the handler returns, where the framework has it
	around          func(next func(), request func() *http.Request) // outside of the guards
}

// guarding says which middleware to use: a By function, or New with a config.
type guarding struct {
	param, header, query string
	template             string
	key                  keyfunc.Func[keyfunc.Request]
	options              []core.Option
	config               *config
}

// config is what the adapters' Config types have in common.
type config struct {
	locker    *core.Locker
	key       keyfunc.Func[keyfunc.Request]
	options   []core.Option
	skip      func(*http.Request) bool
	onRefused func(w http.ResponseWriter, err error)
	failOpen  bool
	status    int
}

func byParam(name string, opts ...core.Option) []guarding {
	return []guarding{{param: name, options: opts}}
}

func post(pattern string, guards []guarding, handle http.HandlerFunc) route {
	return route{method: http.MethodPost, pattern: pattern, guards: guards, handle: handle}
}

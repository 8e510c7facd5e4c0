package conformance_test

import (
	"context"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var frameworks = []framework{ginFramework, echo4Framework, echo5Framework, netHTTPFramework}

// framework builds a server from routes, with one adapter.
type framework struct {
	name         string
	adapter      string // what its panics at set-up begin with
	build        func(routes ...route) http.Handler
	hasErrors    bool // handlers can return errors
	setOnRefused func(f refusing)
	onRefused    func(f refusing) core.Option
	statusOf     func(error) (int, time.Duration)
	reasonOf     func(error) (code, text string)
	partOf       func(error) string
	with         func(l *core.Locker, opts ...core.Option)
	strict       func() core.Option
	failOpen     func() core.Option
	status       func(code int) core.Option
	locker       func(*core.Locker) core.Option
	bufferBody   func(int64) core.Option
	attempt      func(context.Context) int
	ownKey       func(context.Context) (key string, ok bool)     // IdempotencyKey
	httpError    func(status int, text string) error             // where it has errors
	past         func(w http.ResponseWriter) http.ResponseWriter // what writes past the guard, where the framework notices it
}

// checkedServer is a server with what the adapter's RouteCheck tells of its routes.
type checkedServer struct {
	http.Handler
	check func() (report, error)
}

// report is that of an adapter, as all have it.
type report []guard.Route

func (r report) String() string { return guard.Table(r) }
func (r report) Err() error     { return guard.Faults(r) }

func reportOf[R guard.Row](of []R, err error) (report, error) {
	all := make(report, len(of))
	for i, r := range of {
		all[i] = guard.Route(r)
	}
	return all, err
}

// refusing answers a refusal.
type refusing func(w http.ResponseWriter, r *http.Request, err error)

// route is a handler behind one or more guards. Patterns are in net/http's form:
// "/orders/{orderID}/pay".
type route struct {
	method, pattern string
	outside         []companion // before the guards
	guards          []guarding
	inside          []companion // after the guards
	handle          http.HandlerFunc
	work            func(w http.ResponseWriter, r *http.Request) error // in place of handle, where the framework has errors
	around          func(next func(), request func() *http.Request)    // outside of the guards
	failed          func(err error)                                    // outside of the guards, where the framework has errors
}

// run calls the handler.
func (r route) run(w http.ResponseWriter, request *http.Request) error {
	if r.work != nil {
		return r.work(w, request)
	}
	r.handle(w, request)
	return nil
}

// companion names a middleware that people use next to ours: the framework's own,
// or one as they are written for it.
type companion string

const (
	gzipping       companion = "gzip"
	recovering     companion = "recover"
	identifying    companion = "request ID"     // answers with X-Request-Id
	logging        companion = "logger"         // logs the status
	unguarded      companion = "Unguarded"      // the adapter's
	authenticating companion = "authentication" // stores "u7" under "userID", in the framework's own store
)

// guarding says which middleware to use: a By function, or New with a config.
type guarding struct {
	param, header, query string
	template             string
	key                  keyfunc.Func[keyfunc.Request]
	keys                 keyfunc.Set[keyfunc.Request]
	scope                keyfunc.Func[keyfunc.Request] // Idempotent
	options              []core.Option
	config               *config
	with                 *with // the methods of what With returns, in place of the functions
}

// config is what the adapters' Config types have in common.
type config struct {
	locker     *core.Locker
	key        keyfunc.Func[keyfunc.Request]
	keys       keyfunc.Set[keyfunc.Request]
	idempotent *guard.Idempotency
	param      string
	options    []core.Option
	skip       func(*http.Request) bool
	shared     func(*http.Request) bool
	safe       bool // SafeMethods in place of it
	permits    func(*http.Request) int
	weight     func(*http.Request) int
	onRefused  refusing
	failOpen   bool
	status     int
	bufferBody int64
	strict     bool
}

// anyMethod is the method of a route for all of them.
const anyMethod = "*"

func byParam(name string, opts ...core.Option) []guarding {
	return []guarding{{param: name, options: opts}}
}

func byKey(key keyfunc.Func[keyfunc.Request], opts ...core.Option) []guarding {
	return []guarding{{key: key, options: opts}}
}

func byAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) []guarding {
	return []guarding{{keys: keys, options: opts}}
}

func idempotent(scope keyfunc.Func[keyfunc.Request], opts ...core.Option) []guarding {
	return []guarding{{scope: scope, options: opts}}
}

func post(pattern string, guards []guarding, handle http.HandlerFunc) route {
	return route{method: http.MethodPost, pattern: pattern, guards: guards, handle: handle}
}

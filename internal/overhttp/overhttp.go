// Package overhttp is the conformance of HTTP adapters that do not stand on the guard: what each of them answers, asked over a
// connection, for their frameworks do not serve by net/http. Its own test runs it with httplock.
package overhttp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Adapter is an adapter whose middleware is an M.
type Adapter[M any] struct {
	Name string // with which its panics begin
	With func(l *core.Locker, opts ...core.Option) Guards[M]
	New  func(cfg Config) M
	// Serve returns the address of a server that runs until the test ends. It answers 500 when a handler panics.
	Serve func(t *testing.T, routes ...Route[M]) (url string)
	// Problems says that refusals are problem bodies. Others are texts.
	Problems bool
	// SeesLeaving says that the framework tells of a client that leaves while its request waits.
	SeesLeaving bool
	// PassesOthers says that ByParam lets routes without the parameter pass once it has seen one that declares it.
	PassesOthers bool
}

// Guards is what With of an adapter returns.
type Guards[M any] interface {
	ByParam(name string, opts ...core.Option) M
	ByHeader(name string, opts ...core.Option) M
	ByQuery(name string, opts ...core.Option) M
	ByTemplate(t string, opts ...core.Option) M
	By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) M
	ByAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) M
}

// Config is an adapter's Config, whose functions say the same for each request.
type Config struct {
	Locker  *core.Locker
	Key     keyfunc.Func[keyfunc.Request]
	Param   string
	Options []core.Option
	Shared  bool
	Permits int // 0: not set, as with Weight
	Weight  int
	Skip    func() bool
}

// Route is a handler of POST requests behind a guard. Its pattern is in net/http's form: "/orders/{orderID}".
type Route[M any] struct {
	Pattern string
	Guard   M
	Handle  func(Call)
}

// Call is a request as its handler sees it.
type Call interface {
	Context() context.Context
	Param(name string) string
	Body() string
	Answer(status int, text string)
}

// Patience is how long a case waits for what is certain to come.
const Patience = time.Minute

type harness[M any] struct {
	*testing.T
	Adapter[M]
	locker *core.Locker
	heard  Events
	log    *Log
}

// Run tries all that is promised with an adapter.
func Run[M any](t *testing.T, a Adapter[M]) {
	for promise, keeps := range map[string]func(*harness[M]){
		"one request of a key at a time runs":                          oneAtATime[M],
		"a busy lock is a conflict, with a time to try again":          busy[M],
		"an outage and a closed Locker are a service that cannot":      unavailable[M],
		"no Locker is a mistake in the set-up, the default one is not": defaultLocker[M],
		"a panic releases the lock":                                    panicReleases[M],
		"the context ends with the lock":                               lossCancels[M],
		"a window opens after a success only":                          windows[M],
		"a handler re-enters its lock":                                 reentry[M],
		"a client that leaves gives up its wait, if that can be seen":  leaving[M],
		"shared locks, permits and weights":                            forms[M],
		"several keys are taken together":                              severalKeys[M],
		"a request that is skipped has no lock":                        skipped[M],
		"a request without a key is refused":                           refusals[M],
		"a parameter that the route has not is a mistake":              misplaced[M],
		"each By function takes the key that it says":                  byFunctions[M],
		"what is set for one overrides what is set for all":            overrides[M],
		"a bad set-up panics":                                          badSetUp[M],
		"Observers and the log are told of refusals":                   told[M],
	} {
		t.Run(promise, func(t *testing.T) {
			h := &harness[M]{T: t, Adapter: a, log: new(Log)}
			h.locker, h.heard = NewLocker(t, core.Logger(slog.New(slog.NewTextHandler(h.log, nil))))
			keeps(h)
		})
	}
}

var orderID = keyfunc.Int(keyfunc.Param("orderID"))

// serve serves one route, /orders/{orderID}, and returns the address of order 42.
func (h *harness[M]) serve(guard M, handle func(Call)) (url string) {
	return h.Serve(h.T, Route[M]{"/orders/{orderID}", guard, handle}) + "/orders/42"
}

func (h *harness[M]) by(opts ...core.Option) M { return h.With(h.locker).By(orderID, opts...) }

func nothing(Call) {}

func (h *harness[M]) never(Call) { h.Error("the handler ran") }

// parking returns a handler that says that it has entered, and stays.
func parking() (handle func(Call), entered chan string, leave chan struct{}) {
	entered, leave = make(chan string, 10), make(chan struct{})
	return func(c Call) {
		entered <- c.Param("orderID")
		<-leave
	}, entered, leave
}

// WantFree fails the test unless the lock of order 42 is free, or soon.
func WantFree(t *testing.T, locker *core.Locker) {
	t.Helper()
	if err := locker.Do(context.Background(), "orderID=42", func(context.Context) error { return nil }, core.Wait(Patience)); err != nil {
		t.Errorf("the lock is not free: %v", err)
	}
}

func (h *harness[M]) post(url, body string, header ...string) Answer {
	h.Helper()
	return Post(h.T, url, body, header...)
}

// want checks an answer. A refusal tells the client nothing of the key, the lock or Redis.
func (h *harness[M]) want(a Answer, status int) {
	h.Helper()
	if a.Status != status {
		h.Errorf("%d %q, want %d", a.Status, a.Body, status)
	}
	if status < 400 {
		return
	}
	for _, secret := range []string{"=42", "forty-two", "core:", "LOADING", "keyfunc", "lock", "redis"} {
		if strings.Contains(a.Body, secret) {
			h.Errorf("the client is told %q: %q", secret, a.Body)
		}
	}
	retry := status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if after := a.Header.Get("Retry-After"); (after != "" && after != "0") != retry {
		h.Errorf("%d with Retry-After %q", status, after)
	}
	if !h.Problems {
		return
	}
	var problem struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	if err := json.Unmarshal([]byte(a.Body), &problem); err != nil || a.Header.Get("Content-Type") != "application/problem+json" {
		h.Errorf("%q is no problem: %v", a.Body, err)
	}
	if problem.Status != status || problem.Type != "about:blank" || problem.Title == "" || problem.Detail == "" || problem.Code == "" {
		h.Errorf("problem %+v", problem)
	}
}

package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// reuseCases are about middleware outside of the guard that answers before the chain inside has returned: frameworks
// use the request's context again, for another request, while a goroutine still runs the rest of the chain.
var reuseCases = []conformanceCase{
	{"a lock that comes when the context is another request's: no handler runs", func(h *harness) {
		h.eachReuse(func(u *reuse) {
			k := h.hold("id=late")
			ran := false
			u.start(func(http.ResponseWriter, *http.Request) { ran = true })
			u.serveNext("/open")
			h.unlock(k)
			u.wantUntouched()
			if ran && u.again {
				h.Error("the handler has run")
			}
		})
	}},
	{"an idempotent request whose turn comes when the context is another request's: no handler runs, and there was no attempt", func(h *harness) {
		h.eachReuse(func(u *reuse) {
			id, err := guard.LockKey("u7", "1")
			if err != nil {
				h.Fatal(err)
			}
			k := h.hold(id)
			ran := false
			u.guards = idempotent(keyfunc.Const[keyfunc.Request]("u7"), core.Wait(time.Hour))
			u.start(func(http.ResponseWriter, *http.Request) { ran = true })
			u.serveNext("/open")
			h.unlock(k)
			u.wantUntouched()
			if ran && u.again {
				h.Error("the handler has run")
			}
			ran = false
			w := sendWith(context.Background(), h.build(post("/late/{id}", u.guards, func(_ http.ResponseWriter, r *http.Request) {
				ran = h.framework.attempt(r.Context()) == 1
			})), "POST", "/late/late", "Idempotency-Key", "1")
			if u.again && !ran {
				h.Errorf("the next attempt is not the first: %d %q", w.Code, w.Body)
			}
		})
	}},
	{"a refusal that comes when the context is another request's: nothing is written", func(h *harness) {
		h.eachReuse(func(u *reuse) {
			locker := h.lockerWith()
			h.holdOn(locker, "id=late")
			u.options = []core.Option{h.framework.locker(locker)}
			u.start(h.never())
			u.serveNext("/open")
			closing, cancel := context.WithCancel(context.Background())
			cancel()
			_ = locker.Close(closing) // ends the wait
			u.wantUntouched()
		})
	}},
	{"the client has left, and the context is another request's: nothing is written", func(h *harness) {
		h.eachReuse(func(u *reuse) {
			defer h.unlock(h.hold("id=late"))
			u.start(h.never())
			u.serveNext("/open")
			u.leave()
			u.wantUntouched()
		})
	}},
	{"the client has left, and the context is nobody's: nothing is written", func(h *harness) {
		h.eachReuse(func(u *reuse) {
			defer h.unlock(h.hold("id=late"))
			u.start(h.never())
			u.leave()
			synctest.Wait()
			u.serveNext("/open")
			u.wantUntouched()
		})
	}},
	{"a handler that returns when the context is another request's: that one keeps its lock", func(h *harness) {
		for _, end := range map[string]func(){"returns": func() {}, "panics": func() { panic("late") }} {
			for _, left := range []bool{false, true} {
				h.eachReuse(func(u *reuse) {
					finish := make(chan struct{})
					u.start(func(http.ResponseWriter, *http.Request) {
						<-finish
						end()
					})
					if left {
						u.leave()
					}
					u.serveNext("/next")
					close(finish)
					u.wantUntouched()
				})
			}
		}
	}},
	{"a handler that returns when the context is that of a request that waits: it does not run that one's handler", func(h *harness) {
		for _, inside := range [][]companion{nil, {recovering}} {
			h.eachReuse(func(u *reuse) {
				u.inside = inside
				finish := make(chan struct{})
				u.start(func(http.ResponseWriter, *http.Request) { <-finish })
				k := h.hold("id=next")
				u.serveNext("/next")
				close(finish)
				synctest.Wait()
				if u.runs > 0 {
					h.Error("the handler has run without its lock")
				}
				h.unlock(k)
				u.wantUntouched()
			})
		}
	}},
	{"a handler that returns when the context is another request's: what was not seen is no success", func(h *harness) {
		h.eachReuse(func(u *reuse) {
			u.options = []core.Option{core.KeepFor(time.Hour)}
			finish := make(chan struct{})
			u.start(func(http.ResponseWriter, *http.Request) { <-finish })
			u.leave()
			u.serveNext("/open")
			close(finish)
			u.wantUntouched()
			if u.again {
				h.wantWindow("id=late", false)
			}
		})
	}},
	{"an idempotent request whose handler returns when the context is another request's: the outcome is unknown", func(h *harness) {
		tries := 0
		for _, left := range []bool{false, true} {
			h.eachReuse(func(u *reuse) {
				tries++
				u.guards = idempotent(keyfunc.Const[keyfunc.Request](fmt.Sprint("u", tries)))
				finish := make(chan struct{})
				u.start(func(http.ResponseWriter, *http.Request) { <-finish })
				if left {
					u.leave()
				}
				u.serveNext("/open")
				close(finish)
				u.wantUntouched()
				attempt := 0
				w := sendWith(context.Background(), h.build(post("/late/{id}", u.guards, func(_ http.ResponseWriter, r *http.Request) {
					attempt = h.framework.attempt(r.Context())
				})), "POST", "/late/late", "Idempotency-Key", "1")
				if u.again && attempt != 2 {
					h.Errorf("the next attempt is %d: %d %q", attempt, w.Code, w.Body)
				}
			})
		}
	}},
	{"a deadline that ends the wait, in the framework's own goroutine, is answered", func(h *harness) {
		defer h.unlock(h.hold("id=1"))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		h.wantProblem(sendWith(ctx, h.build(post("/{id}", byParam("id", core.Wait(time.Hour)), h.never())), "POST", "/1"), http.StatusConflict)
	}},
	{"middleware that runs the chain in a goroutine and waits for it changes nothing", func(h *harness) {
		r := post("/{id}", byParam("id", core.NoWait()), func(w http.ResponseWriter, r *http.Request) {
			h.wantsHeld("id=1")(w, r)
			w.WriteHeader(http.StatusCreated)
		})
		r.around = func(next func(), request func() *http.Request) {
			returned := make(chan struct{})
			go func() {
				defer close(returned)
				next()
			}()
			<-returned
			if _, held := core.FromContext(request().Context()); held {
				h.Error("afterwards the request still owns the lock")
			}
		}
		server := h.build(r)
		h.wantStatus(send(server, "POST", "/1"), http.StatusCreated)
		defer h.unlock(h.hold("id=1"))
		h.wantProblem(send(server, "POST", "/1"), http.StatusConflict)
	}},
}

// reuse is a request whose goroutine comes late, and one that gets its context.
type reuse struct {
	h       *harness
	inside  []companion
	options []core.Option
	guards  []guarding // nil: by the path parameter id, with the options

	server http.Handler
	late   func() *http.Request // that the context of the late request has
	nexts  func() *http.Request // that the context of the next request has
	leave  context.CancelFunc   // the late request's client
	answer chan struct{}
	ended  chan struct{} // the late goroutine
	next   chan *httptest.ResponseRecorder
	finish chan struct{}
	path   string
	runs   int  // of the next request's handler
	again  bool // the context was used again
}

// eachReuse tries f until the framework has used a context again: it may drop some.
func (h *harness) eachReuse(f func(u *reuse)) {
	h.Helper()
	for range 200 {
		u := &reuse{h: h, answer: make(chan struct{}), ended: make(chan struct{}), next: make(chan *httptest.ResponseRecorder, 1), finish: make(chan struct{})}
		f(u)
		if h.Failed() {
			return
		}
		if u.again || h.framework.name == "net/http" { // which does not use anything again
			return
		}
	}
	h.Error("no context was used again")
}

// start sends a request, which is answered while its goroutine waits for its lock, or for the end of its handler.
func (u *reuse) start(handle http.HandlerFunc) {
	if u.guards == nil {
		u.guards = byParam("id", append(u.options, core.Wait(time.Hour))...)
	}
	late := post("/late/{id}", u.guards, handle)
	late.inside = u.inside
	late.around = func(next func(), request func() *http.Request) {
		u.late = request
		go func() {
			defer close(u.ended)
			defer func() { _ = recover() }()
			next()
		}()
		<-u.answer
	}
	around := func(next func(), request func() *http.Request) {
		own := request()
		u.nexts = request
		next()
		if request().URL != own.URL {
			u.h.Error("the request was replaced by another one")
		}
	}
	guarded := post("/next/{id}", byParam("id", core.Wait(time.Hour)), u.handle)
	guarded.around, guarded.inside = around, u.inside
	open := post("/open/{id}", nil, u.handle)
	open.around = around
	u.server = u.h.build(late, guarded, open)

	ctx, leave := context.WithCancel(context.Background())
	u.leave = leave
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		sendWith(ctx, u.server, "POST", "/late/late", "Idempotency-Key", "1")
	}()
	synctest.Wait()
	close(u.answer)
	<-answered
}

// serveNext sends the next request, and returns when it waits for its lock or its handler runs.
func (u *reuse) serveNext(path string) {
	u.path = path + path
	go func() { u.next <- send(u.server, "POST", u.path) }()
	synctest.Wait()
	u.again = u.late() == u.nexts()
}

func (u *reuse) handle(w http.ResponseWriter, r *http.Request) {
	u.runs++
	u.wantOwnLock(r)
	<-u.finish
	u.wantOwnLock(r)
	w.Header().Set("X-Next", "1")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "next")
}

func (u *reuse) wantOwnLock(r *http.Request) {
	u.h.Helper()
	lock, held := core.FromContext(r.Context())
	if r.URL.Path != u.path || r.Context().Err() != nil || held != strings.HasPrefix(u.path, "/next") || held && lock.Key() != "id=next" {
		u.h.Errorf("the handler of %s has %s, %v, and its lock: %v", u.path, r.URL.Path, r.Context().Err(), held)
	}
}

// wantUntouched checks, after the late goroutine has ended, that the next request's answer is its own.
func (u *reuse) wantUntouched() {
	u.h.Helper()
	synctest.Wait()
	if u.h.framework.name != "net/http" { // where the guard makes another request
		u.wantOwnLock(u.nexts())
	}
	close(u.finish)
	w := <-u.next
	u.h.receive(u.ended, "the late goroutine")
	if w.Code != http.StatusCreated || w.Body.String() != "next" || len(w.Header()["X-Next"]) != 1 || w.Header().Get("Retry-After") != "" || u.runs != 1 {
		u.h.Errorf("the next request was answered with %d %q %v, after %d runs", w.Code, w.Body, w.Header(), u.runs)
	}
	u.leave()
	for _, key := range []string{"id=next"} {
		if !u.h.isFree(key) {
			u.h.Errorf("the lock %s is left", key)
		}
	}
	if n := u.h.log.count("has come back too late"); u.again && n != 1 {
		u.h.Errorf("%d lines in the log", n)
	}
	u.h.log.reset()
}

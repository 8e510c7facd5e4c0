package overhttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

func oneAtATime[M any](h *harness[M]) {
	handle, entered, leave := parking()
	url := h.Serve(h.T, Route[M]{"/orders/{orderID}", h.by(core.Wait(Patience)), handle})
	done := make(chan Answer, 3)
	order := func(id string) { done <- h.post(url+"/orders/"+id, "") }
	go order("42")
	Receive(h.T, entered, "the first request")
	h.heard.Next(h.T, core.EventWaiting)
	go order("042") // the same order
	h.heard.Next(h.T, core.EventWaiting)
	go order("43") // another one runs beside it
	if id := Receive(h.T, entered, "the request for another order"); id != "43" {
		h.Fatalf("order %s runs beside order 42", id)
	}
	leave <- struct{}{}
	leave <- struct{}{}
	if id := Receive(h.T, entered, "the second request"); id != "042" {
		h.Errorf("order %s", id)
	}
	leave <- struct{}{}
	for range 3 {
		h.want(Receive(h.T, done, "the answers"), http.StatusOK)
	}
}

func panicReleases[M any](h *harness[M]) {
	url := h.serve(h.by(), func(Call) { panic("boom") })
	if a := h.post(url, ""); a.Status != http.StatusInternalServerError {
		h.Errorf("status %d", a.Status)
	}
	WantFree(h.T, h.locker)
}

func lossCancels[M any](h *harness[M]) {
	url := h.serve(h.by(), func(c Call) {
		locktest.Lose(h.T, h.locker, "orderID=42")
		Receive(h.T, c.Context().Done(), "the end of the context")
		if cause := context.Cause(c.Context()); !errors.Is(cause, core.ErrLost) {
			h.Errorf("cause %v", cause)
		}
		c.Answer(http.StatusAccepted, "as far as it went")
	})
	h.want(h.post(url, ""), http.StatusAccepted)
}

func windows[M any](h *harness[M]) {
	for name, failing := range map[string]func(Call){
		"client's fault": func(c Call) { c.Answer(http.StatusPaymentRequired, "") },
		"own fault":      func(c Call) { c.Answer(http.StatusBadGateway, "") },
		"panic":          func(Call) { panic("boom") },
	} {
		var works atomic.Bool
		url := h.serve(h.With(h.locker).By(keyfunc.Named(name, orderID), core.KeepFor(time.Hour)), func(c Call) {
			if !works.Load() {
				failing(c)
			}
		})
		if a := h.post(url, ""); a.Status < 400 || a.Status == http.StatusConflict {
			h.Errorf("%s: status %d", name, a.Status)
		}
		works.Store(true)
		h.want(h.post(url, ""), http.StatusOK)
		a := h.post(url, "")
		h.want(a, http.StatusConflict)
		if after, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || after < 60 || after > 3600 {
			h.Errorf("%s: Retry-After %d, %v: the window is an hour", name, after, err)
		}
		if reason := h.heard.Next(h.T, core.EventBusy).Reason; reason != "no_wait" {
			h.Errorf("%s: refused with %q: a window is not waited for", name, reason)
		}
	}
}

func reentry[M any](h *harness[M]) {
	url := h.serve(h.by(), func(c Call) {
		if err := h.locker.Do(c.Context(), "orderID=42", func(context.Context) error { return nil }, core.NoWait()); err != nil {
			h.Errorf("re-entry: %v", err)
		}
	})
	h.want(h.post(url, ""), http.StatusOK)
	WantFree(h.T, h.locker)
}

func leaving[M any](h *harness[M]) {
	url := h.serve(h.by(core.Wait(Patience)), nothing)
	release := locktest.Hold(h.T, h.locker, "orderID=42")
	h.heard.Next(h.T, core.EventAcquired) // by Hold
	ctx, leave := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := Send(ctx, url, "")
		done <- err
	}()
	h.heard.Next(h.T, core.EventWaiting)
	leave()
	if err := Receive(h.T, done, "the client"); !errors.Is(err, context.Canceled) {
		h.Errorf("err %v", err)
	}
	if h.SeesLeaving {
		if reason := h.heard.Next(h.T, core.EventBusy).Reason; reason != "canceled" {
			h.Errorf("the wait ended with %q", reason)
		}
	}
	release()
	if !h.SeesLeaving {
		h.heard.Next(h.T, core.EventReleased)
	}
	WantFree(h.T, h.locker)
}

// forms has one request that stays, and another beside it.
func forms[M any](h *harness[M]) {
	for name, c := range map[string]struct {
		cfg    Config
		beside int
	}{
		"alone":            {Config{}, http.StatusConflict},
		"shared":           {Config{Shared: true}, http.StatusOK},
		"a permit is left": {Config{Permits: 2}, http.StatusOK},
		"none is left":     {Config{Permits: 1}, http.StatusTooManyRequests},
		"one too few":      {Config{Permits: 3, Weight: 2}, http.StatusTooManyRequests},
		"no such weight":   {Config{Permits: 3, Weight: 4}, http.StatusInternalServerError},
	} {
		c.cfg.Locker, c.cfg.Key, c.cfg.Options = h.locker, keyfunc.Named(name, orderID), []core.Option{core.NoWait()}
		handle, entered, leave := parking()
		url := h.serve(h.New(c.cfg), handle)
		done := make(chan Answer, 2)
		go func() { done <- h.post(url, "") }()
		if c.beside == http.StatusInternalServerError {
			h.want(Receive(h.T, done, "the answer"), c.beside)
			continue
		}
		Receive(h.T, entered, "the first request")
		go func() { done <- h.post(url, "") }()
		if c.beside == http.StatusOK {
			Receive(h.T, entered, "the second request")
		} else {
			h.want(Receive(h.T, done, "the refusal"), c.beside)
		}
		close(leave)
		h.want(Receive(h.T, done, "the answer"), http.StatusOK)
		if c.beside == http.StatusOK {
			h.want(Receive(h.T, done, "the other answer"), http.StatusOK)
		}
	}
}

func severalKeys[M any](h *harness[M]) {
	keys := keyfunc.All("account", keyfunc.JSON("from"), keyfunc.JSON("to"))
	url := h.serve(h.With(h.locker).ByAll(keys, core.NoWait()), func(c Call) {
		for _, key := range []string{"account=1", "account=2"} {
			if _, held := core.FromContextKey(c.Context(), key); !held {
				h.Errorf("%s is not held", key)
			}
		}
		c.Answer(http.StatusOK, c.Body())
	})
	const body = `{"from":1,"to":2}`
	if a := h.post(url, body, "Content-Type", "application/json"); a.Status != http.StatusOK || a.Body != body {
		h.Errorf("%v", a)
	}
	if name := h.heard.Next(h.T, core.EventAcquired).Name; name != "account" {
		h.Errorf("name %q", name)
	}
	locktest.Hold(h.T, h.locker, "account=2")
	h.want(h.post(url, body, "Content-Type", "application/json"), http.StatusConflict)
}

func skipped[M any](h *harness[M]) {
	locktest.Hold(h.T, h.locker, "orderID=42")
	for name, guard := range map[string]M{
		"Skip":     h.New(Config{Locker: h.locker, Param: "orderID", Skip: func() bool { return true }}),
		"Optional": h.With(h.locker).By(keyfunc.Optional(keyfunc.Header("X-Order"))),
	} {
		url := h.serve(guard, func(c Call) {
			if _, held := core.FromContext(c.Context()); held {
				h.Errorf("%s: the handler has a lock", name)
			}
		})
		h.want(h.post(url, ""), http.StatusOK)
	}
	waits := Config{Locker: h.locker, Param: "orderID", Skip: func() bool { return false }, Options: []core.Option{core.NoWait()}}
	h.want(h.post(h.serve(h.New(waits), h.never), ""), http.StatusConflict)
}

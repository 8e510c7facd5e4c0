package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
)

// scene is a worker that does step by step what it is told, instead of acting by
// itself.
type scene struct {
	worker *worker
	lock   *core.Lock
	found  access

	began chan int    // the number of the attempt that begins
	end   chan int    // the status with which it ends
	got   chan string // what the client gets
}

// play carries one order out and returns what came of it.
func (s *scene) play(o order) string {
	switch o.Do {
	case "hold": // and read
		k, err := s.worker.locker.Lock(context.Background(), o.Key, core.Lease(o.Lease))
		if err != nil {
			return "refused: " + err.Error()
		}
		s.lock, s.found = k, s.worker.read(k)
		return "holding"
	case "write": // without a look at the context
		if s.found = s.worker.write(s.found); s.found.Stale {
			return "rejected"
		}
		return "written"
	case "send":
		return s.send(o)
	case "answer": // the request that was sent
		s.end <- o.Status
		return <-s.got
	case "unlock":
		if err := s.lock.Unlock(context.Background()); err != nil {
			return kindOf(err)
		}
		return "unlocked"
	}
	return fmt.Sprintf("unknown order %q", o.Do)
}

// send sends a request, and returns when an attempt at it begins, or the client has an answer.
func (s *scene) send(o order) string {
	s.began, s.end, s.got = make(chan int), make(chan int), make(chan string, 1)
	shop := s.worker.idempotent(func(w http.ResponseWriter, r *http.Request) {
		s.began <- httplock.Attempt(r.Context())
		w.WriteHeader(<-s.end)
		fmt.Fprint(w, s.worker.setup.Worker)
	}, core.Lease(o.Lease), core.Wait(o.Wait))
	go func() { s.got <- answerText(sendRequest(background, shop, o.Key)) }()
	select {
	case n := <-s.began:
		return fmt.Sprint("attempt ", n)
	case text := <-s.got:
		return text
	}
}

func answerText(w *httptest.ResponseRecorder) string {
	switch {
	case w.Header().Get("Idempotent-Replayed") != "":
		return fmt.Sprintf("%d of worker %s, again", w.Code, w.Body)
	case w.Code == http.StatusConflict:
		return "409"
	}
	return fmt.Sprintf("%d of worker %s", w.Code, w.Body)
}

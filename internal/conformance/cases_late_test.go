package conformance_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// lateCases have middleware outside that answers while a goroutine waits for its lock, or works: that is
// when timeouts end, as they are longer than the steps between.
var lateCases = []conformanceCase{
	{"goroutines that are left behind by a timeout: all other requests have their own answers and locks", func(h *harness) {
		if isRaced() {
			h.Skip("such middleware is a data race of its own")
		}
		defer h.unlock(h.hold("id=held"))
		l := &lateness{h: h}
		guarded := post("/{id}", byKey(l.key, core.Wait(patience)), l.work)
		guarded.around = l.answer
		s := h.serve(h.build(guarded, post("/open/{id}", nil, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, r.URL.Path)
		})))
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for i := range 120 {
					id := fmt.Sprint(rand.IntN(len(l.inside)))
					number := fmt.Sprint(rand.Int64())
					switch i % 4 {
					case 0:
						s.post("/held", "Number", number, "Late", "waiting")
					case 1:
						s.post("/"+id, "Number", number, "Late", "working")
					case 2:
						if w := s.post("/"+id, "Number", number); w.Code != http.StatusOK || w.Body.Len() > 0 {
							h.Errorf("%s was answered with %d %q", id, w.Code, w.Body)
						}
					case 3:
						path := "/open/" + number
						if w := s.post(path); w.Code != http.StatusAccepted || w.Body.String() != path || w.Header().Get("Retry-After") != "" {
							h.Errorf("%s was answered with %d %q %v", path, w.Code, w.Body, w.Header())
						}
					}
				}
			})
		}
		clients.Wait()
		l.left.Wait()
		runs := 0
		for id := range l.inside {
			runs += l.inside[id].runs
			if n := l.inside[id].max; n > 1 {
				h.Errorf("%d handlers were inside of one lock", n)
			}
			if !h.isFree(fmt.Sprint("id=", id)) {
				h.Error("a lock is left")
			}
		}
		if want := 8 * 120 / 2; runs != want {
			h.Errorf("%d handlers have run, want %d", runs, want)
		}
		if n := h.log.count("has come back too late"); n != 1 && h.framework.name != "net/http" {
			h.Errorf("%d lines in the log", n)
		}
	}},
}

// lateness is of requests by their header fields Number and Late.
type lateness struct {
	h       *harness
	inside  [3]overlap // by the key
	arrived sync.Map   // Number: a channel that is closed when the request has reached the guard
	running sync.Map   // Number: a channel that is closed when its handler runs
	left    sync.WaitGroup
}

func (l *lateness) reached(steps *sync.Map, r *http.Request) chan struct{} {
	step, _ := steps.LoadOrStore(r.Header.Get("Number"), make(chan struct{}))
	return step.(chan struct{})
}

// answer is middleware that runs the chain in a goroutine. It does not wait for one that is late.
func (l *lateness) answer(next func(), request func() *http.Request) {
	r := request()
	returned := make(chan struct{})
	l.left.Go(func() {
		defer close(returned)
		defer func() {
			if v := recover(); v != nil {
				l.h.Errorf("panic: %v", v)
			}
		}()
		next()
	})
	until := (<-chan struct{})(returned)
	switch r.Header.Get("Late") {
	case "waiting":
		until = l.reached(&l.arrived, r)
	case "working":
		until = l.reached(&l.running, r)
	}
	l.h.receive(until, "a request to be answered")
}

func (l *lateness) key(r keyfunc.Request) (string, error) {
	id, _ := r.Param("id")
	close(l.reached(&l.arrived, r.HTTP()))
	return "id=" + id, nil
}

func (l *lateness) work(_ http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/")
	if lock, held := core.FromContext(r.Context()); !held || lock.Key() != "id="+id {
		l.h.Errorf("the handler of %s runs under another lock, or none", id)
		return
	}
	o := &l.inside[id[0]-'0']
	o.enter()
	defer o.leave()
	close(l.reached(&l.running, r))
	if r.Header.Get("Late") != "" {
		<-r.Context().Done()
	}
	for range rand.IntN(1000) { // so that others come in between
		runtime.Gosched()
	}
}

// isRaced reports whether the race detector watches.
func isRaced() bool {
	info, known := debug.ReadBuildInfo()
	return known && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

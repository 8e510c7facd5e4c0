package ginlock

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// recorded is gin's writer, which reports the answer as it is written.
type recorded struct {
	gin.ResponseWriter
	outcome *guard.Outcome
	watched http.ResponseWriter
	stated  bool // WriteHeader was called
}

func record(w gin.ResponseWriter, outcome *guard.Outcome) *recorded {
	known := func() guard.Known { return guard.Known{Begun: w.Written(), Status: w.Status(), Size: int64(w.Size())} }
	return &recorded{ResponseWriter: w, outcome: outcome, watched: guard.Watch(w, outcome, known)}
}

// WriteHeader is gin's, which only notes the status.
func (r *recorded) WriteHeader(code int) {
	r.stated = true
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorded) WriteHeaderNow() {
	r.outcome.Passes()
	r.outcome.WriteHeader(r.Status())
	r.ResponseWriter.WriteHeaderNow()
	r.outcome.Passed()
}

func (r *recorded) Write(p []byte) (int, error) { return r.watched.Write(p) }

func (r *recorded) WriteString(s string) (int, error) { return r.watched.Write([]byte(s)) }

func (r *recorded) Flush() {
	r.WriteHeaderNow() // with the status that is noted
	r.watched.(http.Flusher).Flush()
}

func (r *recorded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return r.watched.(http.Hijacker).Hijack()
}

// Unwrap is for [http.ResponseController].
func (r *recorded) Unwrap() http.ResponseWriter { return r.ResponseWriter }

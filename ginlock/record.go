package ginlock

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// recorded is gin's writer, which reports the answer as it is written. WriteHeader is
// gin's: it only notes the status.
type recorded struct {
	gin.ResponseWriter
	outcome *guard.Outcome
	watched http.ResponseWriter
}

func record(w gin.ResponseWriter, outcome *guard.Outcome) gin.ResponseWriter {
	return &recorded{w, outcome, guard.Watch(w, outcome, w.Status)}
}

func (r *recorded) WriteHeaderNow() {
	r.outcome.WriteHeader(r.Status())
	r.ResponseWriter.WriteHeaderNow()
}

func (r *recorded) Write(p []byte) (int, error) { return r.watched.Write(p) }

func (r *recorded) WriteString(s string) (int, error) { return r.watched.Write([]byte(s)) }

func (r *recorded) Flush() { r.watched.(http.Flusher).Flush() }

func (r *recorded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return r.watched.(http.Hijacker).Hijack()
}

// Unwrap is for [http.ResponseController].
func (r *recorded) Unwrap() http.ResponseWriter { return r.ResponseWriter }

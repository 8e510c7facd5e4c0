package echolock

import (
	"bufio"
	"errors"
	"net"
	"net/http"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// watched is a response whose answer is watched. echo's own response tells the
// status too late when a middleware outside, such as Gzip, has put another one in
// front of it. It has the methods that echo's has.
type watched struct {
	http.ResponseWriter
	answer *guard.Answer
}

func (w *watched) WriteHeader(code int) {
	w.answer.WriteHeader(code)
	w.ResponseWriter.WriteHeader(code)
}

func (w *watched) Write(p []byte) (int, error) {
	w.answer.Write()
	return w.ResponseWriter.Write(p)
}

// Flush panics where it is not supported, as echo's does.
func (w *watched) Flush() {
	w.answer.Write()
	if err := http.NewResponseController(w.ResponseWriter).Flush(); errors.Is(err, http.ErrNotSupported) {
		panic("echolock: the response does not support flushing")
	}
}

func (w *watched) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for [http.ResponseController] and echo.UnwrapResponse.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

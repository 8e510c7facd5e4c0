package httplock

import (
	"io"
	"net/http"

	"github.com/felixge/httpsnoop"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// watch returns w with all its interfaces, which reports what is written to it.
func watch(w http.ResponseWriter, answer *guard.Answer) http.ResponseWriter {
	return httpsnoop.Wrap(w, httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				answer.WriteHeader(code)
				next(code)
			}
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(p []byte) (int, error) {
				answer.Write()
				return next(p)
			}
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(r io.Reader) (int64, error) {
				answer.Write()
				return next(r)
			}
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				answer.Write()
				next()
			}
		},
	})
}

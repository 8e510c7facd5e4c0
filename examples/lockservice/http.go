package lockservice

import (
	"errors"
	"io"
	"net/http"

	"github.com/latchkey-go/latchkey/core"
)

// Handler serves POST /locks/{key}, which answers with the ticket, and PUT and DELETE of the same, with the ticket as their
// body. Put authentication before it: a client names any key.
func (l Locks) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /locks/{key}", func(w http.ResponseWriter, r *http.Request) {
		ticket, err := l.Take(r.Context(), r.PathValue("key"))
		answer(w, http.StatusCreated, ticket, err)
	})
	mux.HandleFunc("PUT /locks/{key}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, "", l.Extend(r.Context(), r.PathValue("key"), ticketOf(w, r)))
	})
	mux.HandleFunc("DELETE /locks/{key}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, "", l.Free(r.Context(), r.PathValue("key"), ticketOf(w, r)))
	})
	return mux
}

// ticketOf is the body; one that cannot be read is a ticket that nobody has.
func ticketOf(w http.ResponseWriter, r *http.Request) string {
	ticket, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 100))
	if err != nil {
		return "unreadable"
	}
	return string(ticket)
}

func answer(w http.ResponseWriter, status int, text string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, core.ErrNotAcquired):
		status, text = http.StatusConflict, "somebody has the lock"
	case errors.Is(err, core.ErrTicket), errors.Is(err, core.ErrLost):
		status, text = http.StatusGone, "the lock is lost, or free"
	case errors.Is(err, core.ErrInvalidKey):
		status, text = http.StatusBadRequest, "the key cannot be used"
	default: // it may have been taken: then it ends after TTL
		status, text = http.StatusServiceUnavailable, "try again"
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

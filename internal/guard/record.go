package guard

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"
)

// record is an answer as it is written, to be sent again. A nil one records nothing.
type record struct {
	max     int
	headers []string // to keep
	encoded bool     // somebody outside encodes the body
	bare    bool     // the answer to a HEAD has no body, whatever its length

	header     http.Header // as the answer began; nil: it has not
	length     string      // of the body, as it says
	body       bytes.Buffer
	incomplete bool // too long, streamed, hijacked, or of a handler that has failed to write it
	isLong     bool // that is why
	ended      bool
}

func (r *record) isOpen() bool { return r != nil && !r.incomplete && !r.ended }

// begin notes the header.
func (r *record) begin(status int, h http.Header) {
	if !r.isOpen() {
		return
	}
	r.header, r.length = r.keep(h), h.Get("Content-Length")
	if status >= http.StatusBadRequest {
		r.max = min(r.max, maxRefusal)
	}
}

func (r *record) keep(h http.Header) http.Header {
	kept := http.Header{}
	for _, field := range r.headers {
		if values, set := h[field]; set && !(field == "Content-Encoding" && r.encoded) {
			kept[field] = slices.Clone(values)
		}
	}
	return kept
}

// isWhole reports whether the body is as long as the answer says. If not, the first client has had
// an error: net/http tells it what was declared, and how much of that came.
func (r *record) isWhole(status int) bool {
	length, err := strconv.ParseInt(r.length, 10, 64)
	switch {
	case err != nil || length < 0: // net/http leaves that out
		return true
	case r.bare, status == http.StatusNoContent, status == http.StatusNotModified:
		return true
	}
	return int64(r.body.Len()) == length
}

// wrote notes what was written, with that outcome, and returns the one for the handler. A
// client who has left does not keep the handler from finishing the answer, which it will ask
// for again.
func (r *record) wrote(p []byte, n int, err error) (int, error) {
	switch {
	case !r.isOpen():
		return n, err
	case errors.Is(err, http.ErrBodyNotAllowed), errors.Is(err, http.ErrContentLength), errors.Is(err, http.ErrHijacked):
		return n, err // there is no more of the answer
	case r.body.Len()+len(p) > r.max:
		r.drop()
		r.isLong = true
		return n, err
	}
	r.body.Write(p)
	return len(p), nil
}

// drop says that the answer cannot be sent again.
func (r *record) drop() {
	if r != nil {
		r.incomplete, r.body = true, bytes.Buffer{}
	}
}

// end says that nothing is recorded from now on.
func (r *record) end() { r.ended, r.body = true, bytes.Buffer{} }

package guard

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// recording is of an answer as it is written, so that it can be stored. A nil one records nothing.
type recording struct {
	max     int
	headers []string // to store
	encoded bool     // somebody outside encodes the body
	bare    bool     // the answer to a HEAD has no body, whatever its length

	header     http.Header // as the answer began; nil: it has not
	length     string      // of the body, as it says
	body       bytes.Buffer
	incomplete bool // too long, streamed, hijacked, or of a handler that has failed to write it
	isLong     bool // that is why
	ended      bool
}

func (r *recording) isOpen() bool { return r != nil && !r.incomplete && !r.ended }

// begin notes the header.
func (r *recording) begin(status int, h http.Header) {
	if !r.isOpen() {
		return
	}
	r.header, r.length = http.Header{}, h.Get("Content-Length")
	for _, field := range r.headers {
		if values, set := h[field]; set && !(field == contentEncoding && r.encoded) {
			r.header[field] = slices.Clone(values)
		}
	}
	if status >= http.StatusBadRequest {
		r.max = min(r.max, maxRefusal)
	}
}

// wrote notes what was written, with that result, and returns the one for the handler. A
// client who has left does not keep the handler from finishing the answer, which it will ask
// for again.
func (r *recording) wrote(p []byte, n int, err error) (int, error) {
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
func (r *recording) drop() {
	if r != nil {
		r.incomplete, r.body = true, bytes.Buffer{}
	}
}

// end says that nothing is recorded from now on.
func (r *recording) end() { r.ended, r.body = true, bytes.Buffer{} }

// isWhole reports whether the body is as long as the answer says. If not, the first client has had
// an error: net/http shows it the declared length, and a shorter body.
func (r *recording) isWhole(status int) bool {
	length, err := strconv.ParseInt(r.length, 10, 64)
	switch {
	case err != nil || length < 0: // net/http leaves that out
		return true
	case r.bare, status == http.StatusNoContent, status == http.StatusNotModified:
		return true
	}
	return int64(r.body.Len()) == length
}

// encode returns the answer as it is stored, and nothing if it cannot be sent again: its header
// is too long, or its body not as long as it says. h is the header of one that was not begun.
func (r *recording) encode(status int, h http.Header) []byte {
	if r.incomplete {
		return nil
	}
	if r.header == nil {
		r.begin(status, h)
	}
	if !r.isWhole(status) {
		return nil
	}
	line, err := json.Marshal(storedAnswer{Status: status, Header: mapped(r.header, textOf)})
	if err != nil {
		panic(err) // strings and an integer always marshal
	}
	if len(line) > maxHeader {
		return nil
	}
	return append(append(line, '\n'), r.body.Bytes()...)
}

// storedAnswer is a line of JSON, and the body.
type storedAnswer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"` // encoded: each character is a byte
	body   []byte
	fields []string // that are stored
}

const (
	replayedHeader  = "Idempotent-Replayed"
	contentEncoding = "Content-Encoding"
	maxHeader       = 8 << 10 // bytes of the line
)

func decode(text []byte) (*storedAnswer, error) {
	line, body, found := bytes.Cut(text, []byte("\n"))
	a := &storedAnswer{body: body}
	if !found {
		return nil, errors.New("it has no header")
	}
	if err := json.Unmarshal(line, a); err != nil {
		return nil, err
	}
	a.Header = mapped(a.Header, bytesOf)
	return a, nil
}

// write sends it again.
func (a *storedAnswer) write(w http.ResponseWriter) {
	h := w.Header()
	for _, field := range a.fields {
		if _, set := a.Header[field]; !set && field != contentEncoding { // which may be of an encoder outside
			delete(h, field)
		}
	}
	for field, values := range a.Header {
		h[field] = values
	}
	h.Set(replayedHeader, "true")
	w.WriteHeader(a.Status)
	if len(a.body) > 0 {
		_, _ = w.Write(a.body) // a client that left meanwhile needs no answer
	}
}

// mapped returns a header with f of each value.
func mapped(h http.Header, f func(string) string) http.Header {
	h = h.Clone()
	for _, values := range h {
		for i, v := range values {
			values[i] = f(v)
		}
	}
	return h
}

// textOf returns a text with a character for each byte of s: JSON has no other bytes than those of UTF-8.
func textOf(s string) string {
	text := make([]rune, len(s))
	for i := range len(s) {
		text[i] = rune(s[i])
	}
	return string(text)
}

// bytesOf returns what textOf was given.
func bytesOf(text string) string {
	s := make([]byte, 0, len(text))
	for _, c := range text {
		s = append(s, byte(c))
	}
	return string(s)
}

// seal returns an answer as it is stored. An empty one stands for one that cannot be sent again.
func (i *Idempotency) seal(text []byte, key, request string) []byte {
	if i.Seal == nil {
		return text
	}
	nonce := make([]byte, i.Seal.NonceSize(), i.Seal.NonceSize()+len(text)+i.Seal.Overhead())
	_, _ = rand.Read(nonce) // it never fails
	return i.Seal.Seal(nonce, nonce, text, []byte(key+" "+request))
}

// open returns what seal was given; nil for what cannot be sent again.
func (i *Idempotency) open(stored []byte, key, request string) (*storedAnswer, error) {
	if i.Seal != nil {
		n := i.Seal.NonceSize()
		if len(stored) < n {
			return nil, errors.New("it is not sealed")
		}
		text, err := i.Seal.Open(nil, stored[:n], stored[n:], []byte(key+" "+request))
		if err != nil {
			return nil, fmt.Errorf("it was sealed by another key: %w", err)
		}
		stored = text
	}
	if len(stored) == 0 {
		return nil, nil
	}
	a, err := decode(stored)
	if a != nil {
		a.fields = i.Headers
	}
	return a, err
}

package guard

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// recording is of an answer as it is written, so that it can be stored. A nil one records nothing.
type recording struct {
	max  int
	bare bool   // the answer to a HEAD has no body, whatever its length
	head head   // as the answer began
	size string // of the body, as it says
	sent int64  // bytes of the body that were passed on
	body bytes.Buffer

	incomplete bool // too long, a stream of events, hijacked, or not all of it was seen
	isLong     bool // that is why
	ended      bool
}

func (r *recording) isOpen() bool { return r != nil && !r.incomplete && !r.ended }

// begin notes the header.
func (r *recording) begin(status int, h http.Header) {
	if !r.isOpen() {
		return
	}
	r.head.begin(h)
	r.size = h.Get("Content-Length")
	if status >= http.StatusBadRequest {
		r.max = min(r.max, maxRefusal)
	}
	if mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";"); strings.EqualFold(strings.TrimSpace(mediaType), "text/event-stream") {
		r.drop()
	}
}

// flushed notes what the header was sent with.
func (r *recording) flushed() {
	if r.isOpen() {
		r.head.flushed(r.body.Bytes())
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
	length, err := strconv.ParseInt(r.size, 10, 64)
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
	if r.head.fields == nil {
		r.begin(status, h)
	}
	if r.incomplete || !r.isWhole(status) {
		return nil
	}
	line, err := json.Marshal(storedAnswer{
		Status: status, Header: mapped(r.head.fields, textOf), Without: r.head.without, Trailer: mapped(r.head.trailer(h), textOf),
	})
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
	Status  int         `json:"status"`
	Header  http.Header `json:"header,omitempty"`  // encoded: each character is a byte
	Without []string    `json:"without,omitempty"` // fields that middleware outside sets, and the handler has taken out
	Trailer http.Header `json:"trailer,omitempty"` // encoded as Header
	body    []byte
	safe    bool // the request that it is sent to again is by a method that only reads
}

const maxHeader = 8 << 10 // bytes of the line

func decode(text []byte) (*storedAnswer, error) {
	line, body, found := bytes.Cut(text, []byte("\n"))
	a := &storedAnswer{body: body}
	if !found {
		return nil, errors.New("it has no header")
	}
	if err := json.Unmarshal(line, a); err != nil {
		return nil, err
	}
	a.Header, a.Trailer = mapped(a.Header, bytesOf), mapped(a.Trailer, bytesOf)
	return a, nil
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
	return decode(stored)
}

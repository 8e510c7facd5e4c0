package guard

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

const replayedHeader = "Idempotent-Replayed"

// kept is an answer that was kept: a line of JSON, and the body.
type kept struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"` // of one that is encoded each character is a byte
	body   []byte
	fields []string // that are kept
}

// maxHeader is how long the header of an answer may be that is kept.
const maxHeader = 8 << 10

// encode returns the recorded answer as it is kept, and nothing if its header is too long, or its
// body not as long as it says. h is the header of one that was not begun.
func (r *record) encode(status int, h http.Header) []byte {
	if r.header == nil {
		r.begin(status, h)
	}
	if !r.isWhole(status) {
		return nil
	}
	k := kept{Status: status, Header: mapped(r.header, textOf)}
	text, err := json.Marshal(k)
	if err != nil {
		panic(err) // strings and an integer always marshal
	}
	if len(text) > maxHeader {
		return nil
	}
	return append(append(text, '\n'), r.body.Bytes()...)
}

func decode(text []byte) (*kept, error) {
	line, body, found := bytes.Cut(text, []byte("\n"))
	k := &kept{body: body}
	if !found {
		return nil, errors.New("it has no header")
	}
	if err := json.Unmarshal(line, k); err != nil {
		return nil, err
	}
	k.Header = mapped(k.Header, bytesOf)
	return k, nil
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

// write sends it again.
func (k *kept) write(w http.ResponseWriter) {
	h := w.Header()
	for _, field := range k.fields {
		if _, set := k.Header[field]; !set && field != "Content-Encoding" { // which may be of who encodes outside
			delete(h, field)
		}
	}
	for field, values := range k.Header {
		h[field] = values
	}
	h.Set(replayedHeader, "true")
	w.WriteHeader(k.Status)
	if len(k.body) > 0 {
		_, _ = w.Write(k.body) // a client that left meanwhile needs no answer
	}
}

// seal has an answer as it is stored. An empty one stands for one that cannot be sent again.
func (i *Idempotency) seal(text []byte, key, request string) []byte {
	if i.Seal == nil {
		return text
	}
	nonce := make([]byte, i.Seal.NonceSize(), i.Seal.NonceSize()+len(text)+i.Seal.Overhead())
	_, _ = rand.Read(nonce) // it never fails
	return i.Seal.Seal(nonce, nonce, text, []byte(key+" "+request))
}

// open returns what seal was given; nil for what cannot be sent again.
func (i *Idempotency) open(stored []byte, key, request string) (*kept, error) {
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
	k, err := decode(stored)
	if k != nil {
		k.fields = i.Headers
	}
	return k, err
}

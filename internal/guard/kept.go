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
	Header http.Header `json:"header,omitempty"`
	body   []byte
}

// maxHeader is how long the header of an answer may be that is kept.
const maxHeader = 64 << 10

// encode returns the recorded answer as it is kept, and nothing if its header is too long. h
// is the header of one that was not begun.
func (r *record) encode(status int, h http.Header) []byte {
	k := kept{Status: status, Header: r.header}
	if k.Header == nil {
		k.Header = r.keep(h)
	}
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
	return k, nil
}

// write sends it again.
func (k *kept) write(w http.ResponseWriter) {
	for field, values := range k.Header {
		w.Header()[field] = values
	}
	w.Header().Set(replayedHeader, "true")
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
	return decode(stored)
}

package guard

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// isGiven reports whether a request has a key, good or bad. A key in a body is not where there is no body,
// whatever JSON says of the rest of the request.
func (i *Idempotency) isGiven(r Request) bool {
	switch _, err := i.Key(r); {
	case errors.Is(err, keyfunc.ErrMissing), errors.Is(err, keyfunc.ErrSkip):
		return false
	case err == nil, errors.Is(err, errBadKey), errors.Is(err, keyfunc.ErrRepeated):
		return true
	}
	body := r.HTTP().Body
	return body != nil && body != http.NoBody
}

// errNoKey is why a request without an Idempotency-Key is refused.
var errNoKey = errors.New("there is no " + idempotencyKey)

// errBadKey is why one with such a key is.
var errBadKey = fmt.Errorf("%w: %s is not 1 to %d visible ASCII characters", keyfunc.ErrMalformed, idempotencyKey, maxKeyBytes)

// headerKey is the Idempotency-Key of a request, by its name.
var headerKey = keyfunc.Named(idempotencyKey, headerValue)

// headerValue is the Idempotency-Key of a request: 1 to 255 visible ASCII characters, and the
// same whether it is quoted, as the draft has it, or not.
func headerValue(r keyfunc.Request) (string, error) {
	key, err := keyfunc.Header(idempotencyKey)(r)
	switch {
	case errors.Is(err, keyfunc.ErrMissing):
		return "", errors.Join(errNoKey, err)
	case err != nil:
		return "", err
	}
	value := r.HTTP().Header.Get(idempotencyKey)
	if value == "" {
		return key, nil // no client has sent the request: see keyfunc.Describe
	}
	value, ok := unquoted(value)
	if !ok || value == "" || len(value) > maxKeyBytes {
		return "", errBadKey
	}
	return value, nil
}

// unquoted reads a string of RFC 9651, section 3.3.3, without spaces; parameters behind it say nothing of the key. What is not
// quoted is taken as it is.
func unquoted(s string) (text string, ok bool) {
	quoted := strings.HasPrefix(s, `"`)
	if quoted {
		s = s[1:]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if quoted && c == '"' {
			rest := s[i+1:]
			return b.String(), rest == "" || len(rest) > 1 && rest[0] == ';'
		}
		if quoted && c == '\\' {
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
			c = s[i]
		}
		if c <= ' ' || c > '~' {
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), !quoted
}

const errBodyRead setupError = "the body was read before Idempotent, which cannot compare requests then: " +
	"put the middleware that reads it, such as a CSRF check by a form field, inside of Idempotent, or have it put the body back"

// fingerprint is a digest of what distinguishes a request from others with the same key. A reader of the digest cannot
// try requests without the client's key.
func (g *Guard) fingerprint(r Request, id string) (string, error) {
	parts, body := []string{r.HTTP().Method}, []byte(nil)
	if own := g.config.Idempotent.Fingerprint; own != nil {
		text, err := derive(alone(keyfunc.Compared(own)), r)
		if err == nil && text[0] == "" || errors.Is(err, keyfunc.ErrSkip) {
			err = keyfunc.ErrMissing // all requests would be one
		}
		if err != nil {
			return "", err
		}
		parts = append(parts, "fingerprint", text[0])
	} else {
		var err error
		if body, err = bodyOf(r.HTTP()); err != nil {
			return "", err
		}
		parts = append(parts, requestParts(r.HTTP())...)
	}
	digest := hmac.New(sha256.New, []byte(id))
	for _, part := range parts {
		fmt.Fprintf(digest, "%d %s", len(part), part)
	}
	digest.Write(body)
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// compared names what the fingerprint of a request is of.
func (i *Idempotency) compared() string {
	if i.Fingerprint == nil {
		return "method, host, path, query, Content-Type, body"
	}
	return strings.Join(append([]string{"method"}, keyfunc.Describe(i.Fingerprint, nil).Names...), ", ")
}

// requestParts are those of a request besides method and body.
func requestParts(r *http.Request) []string {
	path := r.URL.EscapedPath()
	if received, err := url.ParseRequestURI(r.RequestURI); err == nil && received.EscapedPath() != path {
		path = received.EscapedPath() + "\n" + path // a router has taken a prefix away, or the request was made from another one
	}
	return []string{hostOf(r), path, r.URL.RawQuery, strings.Join(r.Header[contentType], "\n")}
}

// hostOf returns the host in one spelling. Behind a proxy it is not known which of the two schemes a port is the default of.
func hostOf(r *http.Request) string {
	host := strings.ToLower(r.Host)
	if _, port, err := net.SplitHostPort(host); err == nil && (port == "" || port == "443" || port == "80") {
		host = host[:len(host)-len(port)-1]
	}
	return host
}

// bodyOf returns the body, which was buffered, and can be read again.
func bodyOf(r *http.Request) (body []byte, err error) {
	if r.Body != nil && r.Body != http.NoBody {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("%w: %w", keyfunc.ErrMalformed, err)
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{bytes.NewReader(body), r.Body}
	}
	if keyfunc.WasRead(r, len(body)) {
		return nil, errBodyRead
	}
	return body, nil
}

package guard

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// headerKey is the Idempotency-Key of a request: 1 to 255 visible ASCII characters, and the
// same whether it is quoted, as the draft has it, or not.
var headerKey = keyfunc.Named(idempotencyKey, func(r keyfunc.Request) (string, error) {
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
})

// unquoted reads a string of RFC 9651, section 3.3.3, without spaces. What is not quoted is
// taken as it is.
func unquoted(s string) (text string, ok bool) {
	quoted := strings.HasPrefix(s, `"`)
	if quoted {
		if len(s) < 2 || !strings.HasSuffix(s, `"`) {
			return "", false
		}
		s = s[1 : len(s)-1]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if quoted && c == '\\' {
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
			c = s[i]
		} else if quoted && c == '"' {
			return "", false
		}
		if c <= ' ' || c > '~' {
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

const errBodyRead setupError = "the body was read before Idempotent, which cannot compare requests then: " +
	"put the middleware that reads it, such as a CSRF check by a form field, inside of Idempotent, or have it put the body back"

// fingerprint is a digest of what distinguishes a request from others with the same key. Its body
// was buffered, and can be read again. A reader of the digest cannot try bodies without
// the client's key.
func fingerprint(r *http.Request, id string) (string, error) {
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return "", fmt.Errorf("%w: %w", keyfunc.ErrMalformed, err)
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{bytes.NewReader(body), r.Body}
	}
	if wasRead(r, int64(len(body))) {
		return "", errBodyRead
	}
	digest := hmac.New(sha256.New, []byte(id))
	for _, part := range []string{r.Method, strings.ToLower(r.Host), r.URL.EscapedPath(), r.URL.RawQuery, strings.Join(r.Header["Content-Type"], "\n")} {
		fmt.Fprintf(digest, "%d %s", len(part), part)
	}
	digest.Write(body)
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// wasRead reports whether some of the body is missing, of which so many bytes are there. Where
// somebody has decompressed it, it may be shorter than it was sent, but has no Content-Length or a Content-Encoding.
func wasRead(r *http.Request, there int64) bool {
	if there == 0 {
		return r.ContentLength > 0 || len(r.PostForm) > 0 || r.MultipartForm != nil
	}
	return there < r.ContentLength && r.Header.Get("Content-Length") != "" && r.Header.Get("Content-Encoding") == ""
}

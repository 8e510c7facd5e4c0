package guard

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/keyfunc"
)

const errBodyRead setupError = "the body was read before Idempotent, which cannot compare requests then: " +
	"put the middleware that reads it, such as a CSRF check by a form field, inside of Idempotent, or have it put the body back"

// fingerprint is a digest of what tells a request from others with the same key. Its body was
// buffered, and can be read again. Whoever reads the digest cannot try bodies without
// knowing the client's key.
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

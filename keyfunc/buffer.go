package keyfunc

import (
	"net/http"
	"strconv"
)

// BufferBody reads the body of r to its end and leaves it to be read, byte for byte:
// for work that must not begin, nor hold a lock, before the client has sent
// everything. It replaces r.Body; the other fields of r stay as they are. After a
// failure too everything can be read, an error while reading included.
//
// It fails with [ErrTooLarge] when the body is longer than maxBytes, or than an
// [http.MaxBytesReader] around it permits: at once, without reading, when r says so
// itself. It fails with [ErrMalformed] when the body could not be read, with the
// cause in it. Up to maxBytes are kept in memory. It blocks until the client has
// sent the body or the server's read deadline has passed, and must not be called
// while somebody reads the body.
func BufferBody(r *http.Request, maxBytes int64) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	tooLong := "it is longer than " + strconv.FormatInt(maxBytes, 10) + " bytes"
	if r.ContentLength > maxBytes {
		return &partError{part: "body", kind: ErrTooLarge, why: tooLong}
	}
	switch _, err := peek(r, maxBytes); {
	case isTooLarge(err):
		return &partError{part: "body", kind: ErrTooLarge, why: tooLong, cause: err}
	case err != nil:
		return &partError{part: "body", kind: ErrMalformed, why: "it could not be read", cause: err}
	}
	return nil
}

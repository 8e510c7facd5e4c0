package keyfunc

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
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
	_, err := readBody(r, part{text: "body"}, maxBytes)
	return err
}

// WasRead reports whether some of the body is missing, of which so many bytes are there. Where
// somebody has decompressed it, it may be shorter than it was sent, but has no Content-Length or a Content-Encoding.
func WasRead(r *http.Request, there int) bool {
	if there == 0 {
		return r.ContentLength > 0 || len(r.PostForm) > 0 || r.MultipartForm != nil
	}
	return int64(there) < r.ContentLength && r.Header.Get("Content-Length") != "" && r.Header.Get("Content-Encoding") == ""
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// readBody returns the body of r, which stays readable, for the sake of a part.
func readBody(r *http.Request, of part, limit int64) ([]byte, error) {
	if !hasBody(r) {
		return nil, nil
	}
	of.name = "body" // the client's program has to look at all of it
	tooLarge := func(cause error) error {
		return &partError{part: of, kind: ErrTooLarge, why: "the body is longer than " + strconv.FormatInt(limit, 10) + " bytes", cause: cause}
	}
	if r.ContentLength > limit {
		return nil, tooLarge(nil)
	}
	body, err := peek(r, limit)
	switch {
	case isTooLarge(err):
		return nil, tooLarge(err)
	case err != nil:
		return nil, &partError{part: of, kind: ErrMalformed, why: "the body could not be read", cause: err}
	}
	return body, nil
}

// errLimit is the cause of an ErrTooLarge that peek has found.
var errLimit = errors.New("keyfunc: body limit reached")

// isTooLarge reports whether a body was too long for us or for a limit that the
// caller has put around it.
func isTooLarge(err error) bool {
	var limit *http.MaxBytesError
	return errors.Is(err, errLimit) || errors.As(err, &limit)
}

// peek returns what is left to read of r's body and leaves it to be read. It returns
// errLimit when that is more than limit bytes, or the body's own error.
func peek(r *http.Request, limit int64) ([]byte, error) {
	body, ok := r.Body.(*replayed)
	if !ok {
		body = &replayed{rest: r.Body}
		r.Body = body
	}
	return body.peek(limit)
}

// replayed is a body of which the beginning was read, and is there to be read
// again. Like net/http's own it may be closed while it is read.
type replayed struct {
	rest io.ReadCloser

	mu     sync.Mutex
	head   []byte // read from rest, not read from here yet
	end    error  // what rest returned after head; nil if it goes on
	closed bool
}

// peek must not be called while the body is read.
func (b *replayed) peek(limit int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, http.ErrBodyReadAfterClose
	}
	limit = min(limit, math.MaxInt64-1)
	if missing := limit + 1 - int64(len(b.head)); missing > 0 && b.end == nil {
		// Not sized by Content-Length: who announces much and sends little
		// should cost little.
		more, err := io.ReadAll(io.LimitReader(b.rest, missing))
		b.head = append(b.head, more...)
		b.end = err
		if err == nil && int64(len(more)) < missing {
			b.end = io.EOF
		}
	}
	switch {
	case int64(len(b.head)) > limit:
		return nil, errLimit
	case b.end != io.EOF: // a wrapped EOF is not the end
		return nil, b.end
	}
	return b.head, nil
}

// Read returns what was peeked at, then the rest.
func (b *replayed) Read(p []byte) (int, error) {
	n, end, here := b.readHead(p)
	if here {
		return n, end
	}
	return b.rest.Read(p)
}

func (b *replayed) readHead(p []byte) (n int, end error, here bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose, true
	case len(b.head) > 0:
		n = copy(p, b.head)
		b.head = b.head[n:]
		return n, nil, true
	case b.end != nil:
		return 0, b.end, true
	}
	return 0, nil, false
}

// Close closes the body that was there before. It does not wait for a Read.
func (b *replayed) Close() error {
	b.mu.Lock()
	b.closed, b.head = true, nil
	b.mu.Unlock()
	return b.rest.Close()
}

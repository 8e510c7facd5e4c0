package keyfunc

import (
	"errors"
	"io"
	"math"
	"net/http"
	"sync"
)

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

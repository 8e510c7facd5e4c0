package guard

import (
	"errors"
	"net/http"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// defaultBuffer is how long a body may be that is read before the lock is asked for, unless
// the configuration says otherwise.
const defaultBuffer = 64 << 10

// buffer reads the body of a request before the lock is asked for. net/http notices that a
// client has left only when its body was read: with a byte of it kept back, clients that
// are gone would wait for the lock in the place of others, or hold it.
func (g *Guard) buffer(r *http.Request) error {
	switch limit := g.config.BufferBody; {
	case limit > 0:
		return keyfunc.BufferBody(r, limit)
	case limit < 0 || r.ContentLength < 0:
		return nil
	}
	err := keyfunc.BufferBody(r, defaultBuffer)
	if errors.Is(err, keyfunc.ErrTooLarge) {
		return nil // for the handler to find out: perhaps it is a stream, or middleware has unzipped it
	}
	return err
}

package store

import (
	"fmt"
	"strconv"
	"time"
)

// reader reads a reply by position. What is missing, or of another type, is an error of
// the whole.
type reader struct {
	values []any
	err    error
}

func read(reply any) reader {
	values, ok := reply.([]any)
	if !ok {
		return reader{err: unexpected(reply)}
	}
	return reader{values: values}
}

func value[T any](r *reader, i int) (v T) {
	switch {
	case r.err != nil:
	case i >= len(r.values):
		r.err = fmt.Errorf("a reply of %d values, expected %d", len(r.values), i+1)
	default:
		var ok bool
		if v, ok = r.values[i].(T); !ok {
			r.err = unexpected(r.values[i])
		}
	}
	return v
}

func (r *reader) number(i int) int64 { return value[int64](r, i) }
func (r *reader) text(i int) string  { return value[string](r, i) }

func (r *reader) milliseconds(i int) time.Duration {
	return time.Duration(r.number(i)) * time.Millisecond
}

func (r *reader) microseconds(i int) time.Duration {
	return time.Duration(r.number(i)) * time.Microsecond
}

func (r *reader) token(i int) int64 {
	token, err := parseToken(r.text(i))
	if r.err == nil {
		r.err = err
	}
	return token
}

// parseToken reads a fencing token, which is greater than 0.
func parseToken(s string) (int64, error) {
	token, err := strconv.ParseUint(s, 10, 63)
	if err != nil || token == 0 {
		return 0, unexpected(s)
	}
	return int64(token), nil
}

// yes reads the reply of a script that says 1 or 0, by itself or in a list.
func yes(reply any) (bool, error) {
	if n, ok := reply.(int64); ok {
		return n == 1, nil
	}
	r := read(reply)
	n := r.number(0)
	return n == 1, r.err
}

// unexpected is a reply that no script of ours gives.
func unexpected(reply any) error {
	if s, ok := reply.(string); ok {
		return fmt.Errorf("an unexpected reply: %.64q", s)
	}
	return fmt.Errorf("an unexpected reply: %T", reply)
}

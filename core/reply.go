package core

import (
	"strconv"
	"time"
)

// number reads an integer of a reply, which may come as text.
func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	default:
		return 0
	}
}

// text reads a string of a reply.
func text(v any) string {
	s, _ := v.(string)
	return s
}

func milliseconds(v any) time.Duration { return time.Duration(number(v)) * time.Millisecond }

package core

import "time"

// number reads an integer of a reply.
func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

// text reads a string of a reply.
func text(v any) string {
	s, _ := v.(string)
	return s
}

func milliseconds(v any) time.Duration { return time.Duration(number(v)) * time.Millisecond }

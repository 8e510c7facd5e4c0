package main

import (
	"fmt"
	"strings"
)

// question is something that a user asks first, and the row that answers it.
type question struct {
	text string
	row  string
	what figure
}

var questions = []question{
	{"requests a second of a gin route, 1 connection", "gin-1", requestsPerSecond},
	{"16 connections", "gin-16", requestsPerSecond},
	{"64 connections", "gin-64", requestsPerSecond},
	{"CPU of a request, µs: 1 connection", "gin-1", requestCPU},
	{"16 connections", "gin-16", requestCPU},
	{"64 connections", "gin-64", requestCPU},
	{"locks a second of one hot key, 64 callers in a process", "hot-64", cyclesPerSecond},
	{"4 processes of 16 callers, 1 ms inside", "hot-4x16", cyclesPerSecond},
	{"longest wait for one hot key, ms: 64 callers in a process", "hot-64", waitMax},
	{"4 processes of 16 callers, 1 ms inside", "hot-4x16", waitMax},
}

// answers writes what a user asks first, beside the library that is most alike.
func (r report) answers(b *strings.Builder) {
	byName := r.byName()
	var lines strings.Builder
	for _, q := range questions {
		if m, measured := byName[q.row]; measured {
			fmt.Fprintf(&lines, "| %s | %s | %s |\n", q.text, show(m.median(latchkeyName, q.what)), show(m.median(redislockName, q.what)))
		}
	}
	if lines.Len() > 0 {
		fmt.Fprintf(b, "| | latchkey | redislock by hand |\n|---|--:|--:|\n%s\n", &lines)
		b.WriteString("[The bars](bars.md) that the project has set itself, and why some are missed.\n\n")
	}
}

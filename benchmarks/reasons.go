package main

import (
	"fmt"
	"slices"
	"strings"
)

// reason is why bars of some rows are missed, from a profile of each row alone and INFO commandstats.
type reason struct {
	name string
	bars []string // beginnings of row and bar
	text string
}

var reasons = []reason{
	{"in the background", []string{"gin-16 with Back", "gin-64 with Back"}, "" +
		"The release needs a goroutine of its own, so that 16 connections have up to 32 calls under way on two cores."},
	{"one connection", []string{"uncontended-1 ", "gin-1 "}, "" +
		"A cycle has eight commands inside its scripts, the floor's has four: a clock, a fencing token, an expiry, the message for who " +
		"waits. Redis needs 7 µs more for them, and the client 9 µs, spread over some 40 functions. System calls are as many as " +
		"redislock's."},
	{"16 callers", []string{"uncontended-16 ", "gin-16 "}, "" +
		"Client and Redis need 42 µs a cycle, and rueidislock 43. But that keeps the two cores busy for 83 % of the time, and latchkey " +
		"for 71 %: at most two round trips are in flight, and each waits for a wake-up. Three, four, six or eight of them, more of them " +
		"as more calls wait, or one with yields were no faster beyond the noise."},
	{"many callers", []string{"uncontended-128 ", "gin-64 "}, "" +
		"The client needs 9 µs a cycle: 25 % to write, read and pack, 16 % to allocate, 9 % for clocks. Redis needs 7 to 10 µs, and is " +
		"the limit at three times the floor even if it never waits."},
	{"several keys", []string{"keys-"}, "" +
		"With 8 keys Redis is busy for 90 % of the time: 31 commands inside the scripts of a cycle, 52 µs, where ObtainMulti has 11, 25 " +
		"µs. For each key there are a hash with owner and token, a look at it before it is deleted, and the message for who waits; " +
		"redislock has one MSETNX, one MGET and one DEL for all, and nobody learns that a key is free."},
	{"permits", []string{"permits-3 "}, "" +
		"29 commands inside the two scripts of a cycle, 110 µs: the next in the queue is chosen, told, and replaced in the queue. x/rate " +
		"has no queue: its longest wait is 14 to 18 times as long."},
	{"the machine", []string{"held-"}, "" +
		"It swings by up to 20 %: on a quieter day held-1m cost 13.7 and 20.9 CPU seconds a minute."},
}

// barTable writes the bars, and why some are missed: Markdown.
func (r report) barTable() string {
	var b, below strings.Builder
	b.WriteString("# Bars\n\nWhat the project wants to reach, beside [what was measured](table.md). " +
		"Bars ask for more than the best peer where that seemed possible.\n\n" +
		"| row | bar | measured | | why |\n|---|---|--:|---|---|\n")
	missed := map[string]bool{}
	for _, v := range r.Verdicts {
		result, why := "met", ""
		if !v.Met {
			result, why = "**missed by "+v.By+"**", v.why()
			missed[why] = true
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", v.Row, v.Text, show(v.Got), result, why)
	}
	for _, why := range reasons {
		if missed[why.name] {
			fmt.Fprintf(&below, "- **%s**: %s\n", why.name, why.text)
		}
	}
	if below.Len() > 0 {
		fmt.Fprintf(&b, "\n%s", &below)
	}
	return b.String()
}

func (v verdict) why() string {
	for _, why := range reasons {
		if slices.ContainsFunc(why.bars, func(begin string) bool { return strings.HasPrefix(v.Row+" "+v.Text, begin) }) {
			return why.name
		}
	}
	return "not known"
}

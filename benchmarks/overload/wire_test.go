package overload

import (
	"bytes"
	"strconv"
)

// nextCommand returns the length of the first command in b, and its words; 0 while it is not complete.
func nextCommand(b []byte) (n int, words []string) {
	count, at := header(b, 0, '*')
	if at == 0 {
		return 0, nil
	}
	for range count {
		var size int
		if size, at = header(b, at, '$'); at == 0 || at+size+2 > len(b) {
			return 0, nil
		}
		words = append(words, string(b[at:at+size]))
		at += size + 2
	}
	return at, words
}

// header reads a number that stands behind a mark, and returns where the next line begins; 0 while it is not complete.
func header(b []byte, at int, mark byte) (n, next int) {
	if at >= len(b) {
		return 0, 0
	}
	end := bytes.Index(b[at:], []byte("\r\n"))
	if end < 0 {
		return 0, 0
	}
	n, err := strconv.Atoi(string(b[at+1 : at+end]))
	if b[at] != mark || err != nil {
		panic("not a command: " + strconv.Quote(string(b[at:min(len(b), at+40)])))
	}
	return n, at + end + 2
}

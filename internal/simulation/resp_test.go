package simulation

import (
	"bytes"
	"strconv"
	"strings"
)

// nextCommand returns the length of the first command in b, and its name; 0 while it
// is not complete.
func nextCommand(b []byte) (n int, name string) {
	count, at := header(b, 0, '*')
	for i := range count {
		var size int
		if size, at = header(b, at, '$'); at == 0 || at+size+2 > len(b) {
			return 0, ""
		}
		if i == 0 {
			name = strings.ToUpper(string(b[at : at+size]))
		}
		at += size + 2
	}
	return at, name
}

// header reads a line that is a number after a mark, and returns where the next one
// begins; 0 while the line is not complete.
func header(b []byte, at int, mark byte) (n, next int) {
	end := bytes.Index(b[min(at, len(b)):], []byte("\r\n"))
	if end < 0 {
		return 0, 0
	}
	if b[at] != mark {
		panic("not a command of go-redis: " + strconv.Quote(string(b[at:])))
	}
	n, err := strconv.Atoi(string(b[at+1 : at+end]))
	if err != nil {
		panic(err)
	}
	return n, at + end + 2
}

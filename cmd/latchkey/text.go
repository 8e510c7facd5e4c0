package main

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/contention"
	"github.com/latchkey-go/latchkey/internal/visible"
)

// columns are those of a terminal.
const columns = 80

func state(info core.Info) string {
	return strings.ReplaceAll(string(contention.State(info)), "_", " ")
}

// left is how long a lock, or a holder, lasts if nobody renews it.
func left(ttl time.Duration) string {
	if ttl < 0 {
		return "no end"
	}
	return ttl.Round(100 * time.Millisecond).String()
}

// span is how long something has lasted, as far as that is known.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d >= time.Minute:
		return d.Round(time.Second).String()
	default:
		return d.Round(100 * time.Millisecond).String()
	}
}

// plain is what may be shown on a terminal, as one word: quoted, and escaped, if anything in it is hidden, or a space, which
// could pass for the next column.
func plain(s string) string {
	parts := visible.Parts(s)
	if len(parts) == 1 && !parts[0].Hidden && !strings.ContainsAny(s, " \"\ufffd") {
		return s
	}
	var out strings.Builder
	for _, p := range parts {
		quoted := strconv.Quote(p.Text)
		if p.Hidden {
			quoted = strconv.QuoteToASCII(p.Text)
		}
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return `"` + out.String() + `"`
}

// width is the columns that a text takes, as far as letters take one each.
func width(s string) int { return utf8.RuneCountInString(s) }

// cut shortens a text to so many columns: what is left out in the middle is shown by an ellipsis.
func cut(s string, columns int) string {
	letters := []rune(s)
	if len(letters) <= columns {
		return s
	}
	end := (columns - 1) / 2
	return string(letters[:columns-1-end]) + "…" + string(letters[len(letters)-end:])
}

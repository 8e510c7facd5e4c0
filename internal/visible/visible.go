// Package visible finds what cannot be seen in a text that somebody else has chosen, such as a key: what is blank, changes
// how others are shown, or could pass for a part of the page or table around it.
package visible

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Part is a part of a text: some visible characters, or one that is hidden. A byte that is not UTF-8 is hidden.
type Part struct {
	Text   string
	Hidden bool
}

// Parts splits a text. Visible are letters, digits, punctuation, symbols and the space, but no blank ones among them,
// and marks on top of those. All else is hidden.
func Parts(s string) []Part {
	var parts []Part
	start, based := 0, false // based: a mark has something to stand on
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		mark := unicode.IsMark(r)
		if shown := unicode.IsPrint(r) && !isBlank(r) && !(r == utf8.RuneError && size == 1) && (based || !mark); shown {
			based = r != ' '
		} else {
			if start < i {
				parts = append(parts, Part{Text: s[start:i]})
			}
			parts = append(parts, Part{s[i : i+size], true})
			start, based = i+size, false
		}
		i += size
	}
	if start < len(s) {
		parts = append(parts, Part{Text: s[start:]})
	}
	return parts
}

// JSON escapes what is hidden in the strings of a JSON text, which stays the same value.
func JSON(text []byte) []byte {
	var out bytes.Buffer
	for _, p := range Parts(string(text)) {
		r, _ := utf8.DecodeRuneInString(p.Text)
		if !p.Hidden || r < utf8.RuneSelf { // outside of strings, or escaped already
			out.WriteString(p.Text)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.Bytes()
}

// isBlank says that a printable character is shown as nothing: Default_Ignorable_Code_Point of Unicode, as far as it is
// printable, and what has an empty glyph.
func isBlank(r rune) bool {
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blanks)
}

// blanks have an empty glyph: a Braille pattern, two hieroglyphs, a filler of Khitan, a note head.
var blanks = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x13441, Hi: 0x13442, Stride: 1}, {Lo: 0x16FE4, Hi: 0x16FE4, Stride: 1}, {Lo: 0x1D159, Hi: 0x1D159, Stride: 1}},
}

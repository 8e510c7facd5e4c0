package guard

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// about says by what is locked, in which form, and when not.
func (g *Guard) about(cfg Config, reads keyfunc.Description) string {
	text := cmp.Or(cfg.About, strings.Join(reads.Parts, " and "), "the constant "+strconv.Quote(reads.Name))
	if g.all {
		text = "all of " + text
	}
	var notes []string
	if form := cfg.Forms.Describe(cfg.Options...); form != "" {
		notes = append(notes, form)
	}
	if cfg.Idempotent != nil {
		notes = append(notes, "the first answer again")
	}
	if reads.Optional {
		notes = append(notes, "optional")
	}
	if cfg.FailOpen {
		notes = append(notes, "FailOpen")
	}
	if notes == nil {
		return text
	}
	return text + " (" + strings.Join(notes, ", ") + ")"
}

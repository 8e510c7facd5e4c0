package simulation

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/latchkey-go/latchkey/internal/checker"
)

// An owner that several calls share may hold a lock of which none of them has heard, as when
// its reply is lost. The next call of that owner enters it, with its token.
func TestAnOwnerEntersWhatItHasNotHeardOf(t *testing.T) {
	at := func(owner string, token, called int64) visit {
		v := visit{Plan: plan{Owner: owner}}
		v.Visit = checker.Visit{Key: "k", Form: checker.Form{Shared: true}, Owner: owner, Token: token, Outcome: checker.Confirmed}
		v.Called, v.Returned, v.Released, v.Done, v.Deadline = called, called+1, called+2, called+3, called+100
		return v
	}
	unheard := at("a", 0, 10)
	stranger, late := at("", 8, 20), at("a", 7, 30)
	for name, c := range map[string]struct {
		visits []visit
		want   porcupine.CheckResult
	}{
		"an earlier call of its own": {[]visit{unheard, stranger, late}, porcupine.Ok},
		"one of another owner":       {[]visit{at("b", 0, 10), stranger, late}, porcupine.Illegal},
		"none":                       {[]visit{stranger, late}, porcupine.Illegal},
		"nobody's owner":             {[]visit{at("", 0, 10), stranger, at("", 7, 30)}, porcupine.Illegal},
	} {
		if got := checker.Linearizable(sessions(c.visits), 0, time.Minute); got != c.want {
			t.Errorf("after %s: %s, want %s", name, got, c.want)
		}
	}
}

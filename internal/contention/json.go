package contention

import (
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/core"
)

// Processes and those that wait, in the JSON of the command line and of the lock page.
type (
	ProcessJSON struct {
		Name  string    `json:"name"`
		PID   int       `json:"pid"`
		Since time.Time `json:"since"`
	}
	WaitingJSON struct {
		Process *ProcessJSON `json:"process,omitempty"`
		Owner   string       `json:"owner,omitempty"`
		Form    string       `json:"form"`
		Waited  int64        `json:"waited_ms"`
		Polls   bool         `json:"polls"`
	}
)

// Escaped is a key as a query has it, where JSON has no place for its bytes; empty for others.
func Escaped(key string) string {
	if utf8.ValidString(key) {
		return ""
	}
	return url.QueryEscape(key)
}

// ProcessOf is nil where an owner tells of no process.
func ProcessOf(owner string) *ProcessJSON {
	process, _ := core.ProcessOf(owner)
	return newProcess(process)
}

func newProcess(p core.Process) *ProcessJSON {
	if p.Name == "" {
		return nil
	}
	return &ProcessJSON{p.Name, p.PID, p.Since.UTC()}
}

// WaitingOf is not nil.
func WaitingOf(info core.Info) []WaitingJSON {
	waiting := []WaitingJSON{}
	for _, q := range info.Queue {
		waiting = append(waiting, WaitingJSON{newProcess(q.Process), q.Owner, q.Form, q.Waited.Milliseconds(), q.Polls})
	}
	return waiting
}

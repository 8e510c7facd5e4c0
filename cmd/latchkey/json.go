package main

import (
	"encoding/json"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/contention"
)

// The form of -json, which docs/operations.md promises.
type (
	listJSON struct {
		Total int        `json:"total"`
		Locks []lockJSON `json:"locks"`
	}
	lockJSON struct {
		Key      string        `json:"key"`
		State    string        `json:"state"`
		Form     string        `json:"form,omitempty"`
		TTL      int64         `json:"ttl_ms"`
		Attempt  int           `json:"attempt,omitempty"`
		Handover *handoverJSON `json:"handover,omitempty"`
		Holders  []holderJSON  `json:"holders"`
		Waiting  []waitingJSON `json:"waiting"`
	}
	handoverJSON struct {
		By      string       `json:"by,omitempty"`
		Process *processJSON `json:"process,omitempty"`
		Ticket  string       `json:"ticket_sha1"`
	}
	holderJSON struct {
		Owner   string       `json:"owner"`
		Process *processJSON `json:"process,omitempty"`
		Count   int          `json:"count"`
		Permits int          `json:"permits,omitempty"`
		HeldFor int64        `json:"held_ms"`
		TTL     int64        `json:"ttl_ms"`
	}
	waitingJSON struct {
		Process *processJSON `json:"process,omitempty"`
		Owner   string       `json:"owner,omitempty"`
		Form    string       `json:"form"`
		Waited  int64        `json:"waited_ms"`
		Polls   bool         `json:"polls"`
	}
	processJSON struct {
		Name  string    `json:"name"`
		PID   int       `json:"pid"`
		Since time.Time `json:"since"`
	}
)

func newListJSON(locks []found, total int) listJSON {
	list := listJSON{Total: total, Locks: []lockJSON{}}
	for _, l := range locks {
		list.Locks = append(list.Locks, newLockJSON(l.key, l.Info))
	}
	return list
}

func newLockJSON(key string, info core.Info) lockJSON {
	lock := lockJSON{
		Key: key, State: contention.State(info), Form: info.Form, TTL: info.TTL.Milliseconds(), Attempt: info.Attempt,
		Holders: []holderJSON{}, Waiting: []waitingJSON{},
	}
	if info.Ticket != "" {
		lock.Handover = &handoverJSON{info.HandedOverBy, processOf(info.HandedOverBy), info.Ticket}
	}
	for _, h := range info.Holders {
		lock.Holders = append(lock.Holders, holderJSON{
			h.Owner, processOf(h.Owner), h.Count, h.Weight, h.HeldFor.Milliseconds(), h.TTL.Milliseconds(),
		})
	}
	for _, q := range info.Queue {
		lock.Waiting = append(lock.Waiting, waitingJSON{newProcessJSON(q.Process), q.Owner, q.Form, q.Waited.Milliseconds(), q.Polls})
	}
	return lock
}

func processOf(owner string) *processJSON {
	process, _ := core.ProcessOf(owner)
	return newProcessJSON(process)
}

// newProcessJSON is nil for a process that is not known.
func newProcessJSON(p core.Process) *processJSON {
	if p.Name == "" {
		return nil
	}
	return &processJSON{p.Name, p.PID, p.Since.UTC()}
}

// printJSON prints a value in lines.
func (p *program) printJSON(value any) error {
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

package main

import (
	"bytes"
	"encoding/json"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/contention"
	"github.com/latchkey-go/latchkey/internal/visible"
)

// The form of -json, which docs/operations.md promises.
type (
	listJSON struct {
		Total   int        `json:"total"`
		LeftOut int        `json:"answered_left_out,omitempty"`
		Locks   []lockJSON `json:"locks"`
	}
	lockJSON struct {
		Key      string                   `json:"key"`
		Escaped  string                   `json:"escaped,omitempty"`
		State    core.State               `json:"state"`
		Form     string                   `json:"form,omitempty"`
		TTL      int64                    `json:"ttl_ms"`
		Attempt  int                      `json:"attempt,omitempty"`
		Handover *handoverJSON            `json:"handover,omitempty"`
		Holders  []holderJSON             `json:"holders"`
		Waiting  []contention.WaitingJSON `json:"waiting"`
	}
	handoverJSON struct {
		By      string                  `json:"by,omitempty"`
		Process *contention.ProcessJSON `json:"process,omitempty"`
		Ticket  string                  `json:"ticket_sha1"`
	}
	holderJSON struct {
		Owner   string                  `json:"owner"`
		Process *contention.ProcessJSON `json:"process,omitempty"`
		Count   int                     `json:"count"`
		Permits int                     `json:"permits,omitempty"`
		HeldFor int64                   `json:"held_ms"`
		TTL     int64                   `json:"ttl_ms"`
		Renewed *int64                  `json:"renewed_ms,omitempty"`
	}
)

func newListJSON(locks []found, total, leftOut int) listJSON {
	list := listJSON{total, leftOut, []lockJSON{}}
	for _, l := range locks {
		list.Locks = append(list.Locks, newLockJSON(l.key, l.Info))
	}
	return list
}

func newLockJSON(key string, info core.Info) lockJSON {
	lock := lockJSON{
		Key: key, Escaped: contention.Escaped(key), State: contention.State(info), Form: info.Form, TTL: info.TTL.Milliseconds(), Attempt: info.Attempt,
		Holders: []holderJSON{}, Waiting: contention.WaitingOf(info),
	}
	if info.Ticket != "" {
		lock.Handover = &handoverJSON{info.HandedOverBy, contention.ProcessOf(info.HandedOverBy), info.Ticket}
	}
	for _, h := range info.Holders {
		holder := holderJSON{h.Owner, contention.ProcessOf(h.Owner), h.Count, h.Weight, h.HeldFor.Milliseconds(), h.TTL.Milliseconds(), nil}
		if ago, _, known := contention.Renewal(h); known {
			ms := ago.Milliseconds()
			holder.Renewed = &ms
		}
		lock.Holders = append(lock.Holders, holder)
	}
	return lock
}

// printJSON prints a value in lines.
func (p *program) printJSON(value any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return err
	}
	_, err := p.stdout.Write(visible.JSON(text.Bytes()))
	return err
}

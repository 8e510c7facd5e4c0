package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/internal/visible"
)

// show says who has a lock.
func (p *program) show(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey show")
	scope := f.String("idempotent", "", "KEY is an Idempotency-Key of this `scope`, such as value.userID=42: shows the lock of the request")
	if err := p.parse(f, args, 1, 1); err != nil {
		return 0, err
	}
	locker, disconnect, err := p.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer disconnect()
	key := f.Arg(0)
	if *scope != "" {
		if key, err = guard.LockKey(*scope, key); err != nil {
			return 0, fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	_, err = p.look(ctx, locker, key)
	return 0, err
}

// look shows what Redis says of a key.
func (p *program) look(ctx context.Context, locker *core.Locker, key string) (core.Info, error) {
	info, err := locker.Inspect(ctx, key)
	if err != nil {
		return info, err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "key\t%s\nstate\t%s\n", plain(key), state(info))
	for _, h := range info.Holders {
		fmt.Fprintf(w, "owner\t%s\n", plain(h.Owner))
		if who, ok := core.ProcessOf(h.Owner); ok {
			fmt.Fprintf(w, "process\t%d of %q, since %s\n", who.PID, who.Name, who.Since.Format(time.RFC3339))
		}
		if h.Weight > 1 {
			fmt.Fprintf(w, "permits\t%d\n", h.Weight)
		}
		fmt.Fprintf(w, "holds\t%d\nleft\t%s\n", h.Count, left(h.TTL))
	}
	if info.Locked && info.Holders == nil {
		fmt.Fprintf(w, "left\t%s\n", left(info.TTL))
	}
	if !info.Locked {
		p.hint(w, key)
	}
	return info, nil
}

// hint tells of another key that may be meant by one that is free: the same without the prefix, which was
// copied from Redis, or one with the name that middleware gives it.
func (p *program) hint(w io.Writer, key string) {
	if meant, doubled := strings.CutPrefix(key, p.prefix); doubled && meant != key && meant != "" {
		fmt.Fprintf(w, "warning\tthe key begins with the prefix, which Redis then has twice: did you mean %s?\n", plain(meant))
	} else if !strings.ContainsAny(key, "=:") {
		fmt.Fprintf(w, "hint\tmost keys of middleware have a name, such as orderID=%s: latchkey ls %[1]s finds them\n", plain(key))
	}
}

func state(info core.Info) string {
	switch {
	case !info.Locked:
		return "free"
	case info.Parked:
		return "parked"
	case info.Answered:
		return "answered"
	case info.OutcomeUnknown:
		return "outcome unknown"
	case info.Holders == nil:
		return "dedup window"
	case info.Form == "exclusive":
		return "held"
	default:
		return info.Form
	}
}

// left is how long a lock, or a holder, lasts if nobody renews it.
func left(ttl time.Duration) string {
	if ttl < 0 {
		return "no end"
	}
	return ttl.Round(100 * time.Millisecond).String()
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

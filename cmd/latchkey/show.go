package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/guard"
)

// show says who has a lock, and who waits for it. The exit code says whether there is one.
func (p *program) show(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey show")
	scope := f.String("idempotent", "", "KEY is an Idempotency-Key of this `scope`, such as value.userID=42: shows the lock of the request")
	asJSON := f.Bool("json", false, "as JSON")
	if err := p.parse(f, args, 1, 1); err != nil {
		return 0, err
	}
	locker, disconnect, err := p.connect(ctx, adapter.Looking())
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
	info, err := locker.Inspect(ctx, key)
	switch {
	case err != nil:
		return 0, err
	case *asJSON:
		err = p.printJSON(newLockJSON(key, info))
	default:
		p.print(*scope, key, info)
	}
	if !info.Locked {
		return exitFree, err
	}
	return 0, err
}

// print shows what Redis says of a key, which may be that of a request of a scope.
func (p *program) print(scope, key string, info core.Info) {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "key\t%s\nstate\t%s\n", plain(key), state(info))
	for _, h := range info.Holders {
		fmt.Fprintf(w, "owner\t%s\n", plain(h.Owner))
		printProcess(w, "process", h.Owner)
		if h.Weight > 1 {
			fmt.Fprintf(w, "permits\t%d\n", h.Weight)
		}
		fmt.Fprintf(w, "holds\t%d\nheld\t%s\nleft\t%s\n", h.Count, span(h.HeldFor), left(h.TTL))
		if ago, ok := renewed(h); ok {
			overdue := ""
			if ago > h.Lease/2 {
				overdue = ": overdue"
			}
			fmt.Fprintf(w, "renewed\t%s ago, due every %s%s\n", ago.Round(100*time.Millisecond), (h.Lease / 3).Round(time.Millisecond), overdue)
		}
	}
	if info.Attempt > 0 {
		fmt.Fprintf(w, "attempt\t%d\n", info.Attempt)
	}
	if info.Ticket != "" {
		fmt.Fprintf(w, "ticket\tSHA-1 %s\n", info.Ticket)
		if info.HandedOverBy != "" {
			fmt.Fprintf(w, "handed over by\t%s\n", plain(info.HandedOverBy))
			printProcess(w, "", info.HandedOverBy)
		}
	}
	if info.Locked && info.Holders == nil {
		fmt.Fprintf(w, "left\t%s\n", left(info.TTL))
	}
	for _, q := range info.Queue {
		who, how := "somebody", "subscribed"
		if q.Process.Name != "" {
			who = fmt.Sprintf("%d of %q", q.Process.PID, q.Process.Name)
		}
		if q.Owner != "" {
			who += " as " + plain(q.Owner)
		}
		if q.Polls {
			how = "polls"
		}
		fmt.Fprintf(w, "waiting\t%s, %s, for %s, %s\n", who, q.Form, q.Waited.Round(100*time.Millisecond), how)
	}
	if !info.Locked {
		p.hint(w, scope, key)
	}
}

// printProcess shows the process of an owner, if its text shows one.
func printProcess(w io.Writer, label, owner string) {
	if who, ok := core.ProcessOf(owner); ok {
		fmt.Fprintf(w, "%s\t%d of %q, since %s\n", label, who.PID, who.Name, who.Since.Format(time.RFC3339))
	}
}

// hint tells of what may be meant by a key that is free: the same without the prefix, which was copied from Redis, one with the
// name that middleware gives it, or one of a scope that is written otherwise.
func (p *program) hint(w io.Writer, scope, key string) {
	meant, doubled := strings.CutPrefix(key, p.prefix)
	switch {
	case scope != "":
		fmt.Fprintln(w, "hint\ta scope is written as value.userID=42, X-User=42 (header), cookie.user=42")
	case doubled && meant != key && meant != "":
		fmt.Fprintf(w, "warning\tit begins with the prefix: did you mean %s?\n", plain(meant))
	case !strings.ContainsAny(key, "=:"):
		fmt.Fprintf(w, "hint\tkeys of middleware have a name: latchkey ls %s finds orderID=%[1]s\n", plain(key))
	}
}

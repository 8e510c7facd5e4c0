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
	"github.com/latchkey-go/latchkey/internal/contention"
	"github.com/latchkey-go/latchkey/internal/guard"
)

// show says who has a lock, and who waits for it. The exit code says whether there is one.
func (p *program) show(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey show")
	scope := f.String("idempotent", "", "KEY is an Idempotency-Key of this `scope`, such as value.userID=42: shows the lock of the request")
	asJSON := f.Bool("json", false, "as JSON")
	key, err := p.key(f, args)
	if err != nil {
		return 0, err
	}
	locker, disconnect, err := p.connect(ctx, adapter.Looking())
	if err != nil {
		return 0, err
	}
	defer disconnect()
	if *scope != "" {
		if key, err = guard.LockKey(*scope, key); err != nil {
			return 0, fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	info, err := inspectPatiently(ctx, locker, key)
	switch {
	case err != nil:
		return 0, err
	case *asJSON:
		err = p.printJSON(newLockJSON(key, info))
	default:
		p.print(ctx, *scope, key, info)
	}
	if info.Locked {
		return 0, err
	}
	if !*asJSON {
		client := newClient(p.url())
		defer client.Close()
		p.sayWhere(ctx, client)
	}
	return exitFree, err
}

// print shows what Redis says of a key, which may be that of a request of a scope.
func (p *program) print(ctx context.Context, scope, key string, info core.Info) {
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
		if ago, overdue, known := contention.Renewal(h); known {
			stopped := ""
			if overdue {
				stopped = ": it does not renew"
			}
			fmt.Fprintf(w, "renewed\t%s ago, due every %s%s\n", ago.Round(100*time.Millisecond), (h.Lease / 3).Round(time.Millisecond), stopped)
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
	if info.State == core.StateAnswered && p.hasNoAnswer(ctx, key) {
		fmt.Fprintln(w, "answer\tnone: the work is done, and its answer could not be stored; whoever asks again gets 409")
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

// hasNoAnswer says that an answer of an idempotent request stands for one that was too large to be stored.
func (p *program) hasNoAnswer(ctx context.Context, key string) bool {
	if !strings.HasPrefix(key, "idempotent:") { // those keys are not escaped in Redis
		return false
	}
	client := newClient(p.url())
	defer client.Close()
	mode, _ := client.HGet(ctx, p.prefix+key, "mode").Result() // the time and the digest of the request
	_, request, _ := strings.Cut(mode, " ")
	length, err := client.HStrLen(ctx, p.prefix+key, answerField).Result()
	return err == nil && request != "" && length == int64(len(request)+len(" "))
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

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// unlock frees a lock, whoever has it, or evicts one of its holders.
func (p *program) unlock(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey unlock")
	sure := f.Bool("y", false, "do not ask")
	only := f.String("owner", "", "the `holder` to evict where several have the lock, as show names it; by default all of them")
	key, err := p.key(f, args)
	if err != nil {
		return 0, err
	}
	locker, disconnect, err := p.connect(ctx, adapter.Looking())
	if err != nil {
		return 0, err
	}
	defer disconnect()
	info, err := inspectPatiently(ctx, locker, key)
	if err != nil {
		return 0, err
	}
	p.print(ctx, "", key, info)
	owners := []string{*only}
	if *only == "" && info.Holders != nil {
		owners = nil
		for _, h := range info.Holders {
			owners = append(owners, h.Owner)
		}
	}
	switch {
	case !info.Locked:
		fmt.Fprintln(p.stdout, "the lock is free: nothing to do")
		return exitFree, nil
	case *only != "" && !slices.ContainsFunc(info.Holders, func(h core.Holder) bool { return h.Owner == *only }):
		return exitBusy, fmt.Errorf("%s does not hold the lock", plain(*only))
	case !*sure && !p.agreed(info, *only):
		return exitBusy, errors.New("nothing was done")
	}
	freed, err := locker.ForceUnlock(ctx, key, owners...) // not those that have come meanwhile
	if err != nil {
		return 0, fmt.Errorf("it may have been freed or not: %w", err)
	}
	if !freed {
		return exitBusy, errors.New("the lock has changed hands since; nothing was done")
	}
	switch left := len(info.Holders) - len(owners); {
	case left > 0:
		fmt.Fprintf(p.stdout, "evicted; others have the lock: %d\n", left)
	case isUnderWay(info):
		fmt.Fprintln(p.stdout, "evicted; the outcome of the attempt is unknown. Once you know it, unlock again to have the attempt forgotten")
	default:
		fmt.Fprintln(p.stdout, "freed")
	}
	return 0, nil
}

// isUnderWay says that an attempt at work of which nobody else is to do it twice has the lock.
func isUnderWay(info core.Info) bool { return info.Attempt > 0 && info.Holders != nil }

// agreed asks whether to go on, with all of its holders or with one.
func (p *program) agreed(info core.Info, only string) bool {
	warning, question := "This does not stop the holder, which learns of it at its next renewal. Until then two may be at work.", "Free it?"
	switch {
	case only != "" && len(info.Holders) > 1:
		warning = "This does not stop the holder, which learns of it at its next renewal. Until then one more may be at work."
		question = "Evict " + plain(only) + "?"
	case len(info.Holders) > 1:
		warning = "This does not stop the holders. Each learns of it at its next renewal. Until then others may be at work beside them."
	case isUnderWay(info):
		warning = "This does not stop the attempt, which learns of it at its next renewal. Until then two may be at work. " +
			"What it has done is unknown then, and the next attempt is told so, or refused."
	case info.State == core.StateParked:
		warning = "The lock is handed over and waits for the call with its ticket. " +
			"Without the lock a task of asynqlock competes with others, and Resume fails."
	case info.State == core.StateAnswered:
		warning = "The work was done, and those who ask for it again get its result or answer. Without that the next one does it again."
	case info.State == core.StateOutcomeUnknown:
		warning = "The outcome of the last attempt at the work is unknown. Without the lock the next attempt counts as the first."
	case info.State == core.StateForeign:
		warning = "This is no lock of latchkey. Its holder does not learn of it: two may be at work until the holder is done."
	case info.State == core.StateDedupWindow:
		warning = "The work was done, and the dedup window keeps it from being done again."
	}
	fmt.Fprintf(p.stdout, "\n%s\n%s [y/N] ", warning, question)
	answer, _ := bufio.NewReader(p.stdin).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

// unlock frees a lock whoever has it.
func (p *program) unlock(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey unlock")
	sure := f.Bool("y", false, "do not ask")
	if err := p.parse(f, args, 1, 1); err != nil {
		return 0, err
	}
	locker, disconnect, err := p.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer disconnect()
	key := f.Arg(0)
	info, err := p.look(ctx, locker, key)
	switch {
	case err != nil:
		return 0, err
	case !info.Locked:
		return exitBusy, errors.New("the lock is free already")
	case !*sure && !p.agreed(info.Owner != ""):
		return exitBusy, errors.New("nothing was done")
	}
	freed, err := locker.ForceUnlockOwner(ctx, key, info.Owner)
	switch {
	case err != nil:
		return 0, fmt.Errorf("it may have been freed or not: %w", err)
	case !freed:
		return exitBusy, errors.New("the lock has changed hands since; nothing was done")
	}
	fmt.Fprintln(p.stdout, "freed")
	return 0, nil
}

// agreed asks whether to go on.
func (p *program) agreed(held bool) bool {
	warning := "The work was done, and in this window it is not to be done again. Without the window it can be."
	if held {
		warning = "This does not stop the holder, which learns of it at its next renewal. Until then two may be at work."
	}
	fmt.Fprintf(p.stdout, "\n%s\nFree it? [y/N] ", warning)
	answer, _ := bufio.NewReader(p.stdin).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

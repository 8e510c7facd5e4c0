package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// level is one entry of a caller into its lock.
type level struct {
	name     string
	holds    int       // in Redis, this one included
	asked    time.Time // Do was called
	in, out  time.Time // its function began, and ended
	returned time.Time // Do returned
}

// enter notes that a function asks for the lock, and returns what notes that it has
// given it back.
func (c *caller) enter(name string) (left func()) {
	i := len(c.levels)
	c.levels = append(c.levels, level{name: name, asked: time.Now()})
	return func() { c.levels[i].returned = time.Now() }
}

// inside is what all functions do under the lock: they write down that they are there
// and how many holds there are, and call the next one. The last one works a little.
func (c *caller) inside(ctx context.Context, next func(context.Context) error) error {
	i := len(c.levels) - 1
	c.levels[i].in = time.Now()
	defer func() { c.levels[i].out = time.Now() }()

	lock, held := core.FromContext(ctx)
	if !held {
		return errors.New("the context has no lock")
	}
	holds, err := lock.Count(ctx)
	if err != nil {
		return err
	}
	if c.levels[i].holds = holds; holds != i+1 {
		return fmt.Errorf("caller %d has %d holds at level %d", c.number, holds, i+1)
	}
	if err := c.audit.write(ctx, c.number, "in"); err != nil {
		return err
	}
	if i+1 < *depth {
		err = next(ctx)
	} else {
		time.Sleep(time.Millisecond)
	}
	return errors.Join(err, c.audit.write(ctx, c.number, "out"))
}

// auditLog is a list in Redis of who came in and went out. Other than the clocks of the
// callers it has an order that all servers agree on.
type auditLog struct {
	client *redis.Client
	name   string
}

func (a *auditLog) write(ctx context.Context, number int, what string) error {
	return a.client.RPush(ctx, a.name, fmt.Sprintf("%d %s", number, what)).Err()
}

func (a *auditLog) remove(ctx context.Context) { a.client.Del(ctx, a.name) }

// check reads the list, and fails if somebody came in between the levels of another one.
func (a *auditLog) check(ctx context.Context) error {
	entries, err := a.client.LRange(ctx, a.name, 0, -1).Result()
	if err != nil {
		return err
	}
	if err := checkEntries(entries); err != nil {
		return err
	}
	fmt.Printf("\nNobody came in between the levels of another one: %d entries, %d exits.\n", len(entries)/2, len(entries)/2)
	return nil
}

func checkEntries(entries []string) error {
	holder, holds := "", 0
	for _, e := range entries {
		number, what, _ := strings.Cut(e, " ")
		if holds > 0 && number != holder {
			return fmt.Errorf("caller %s came in between the levels of caller %s", number, holder)
		}
		holder = number
		if what == "in" {
			holds++
		} else {
			holds--
		}
		if holds < 0 {
			return fmt.Errorf("caller %s went out more often than it came in", number)
		}
	}
	if holds != 0 {
		return fmt.Errorf("caller %s is still inside, %d levels deep", holder, holds)
	}
	return nil
}

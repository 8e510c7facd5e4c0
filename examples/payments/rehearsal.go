package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// rehearsal tries out what happens at each step.
type rehearsal struct {
	redis, database string
	folder          string // for databases where there is none
}

// scene is what happens at a step, and who asks meanwhile.
type scene struct {
	title   string
	happens happening
	rival   customer // beside ann
}

// Two who cannot both pay, as an order costs 100.
var (
	ann = customer{name: "ann", amount: 60}
	bob = customer{name: "bob", amount: 60}
)

var scenes = []scene{
	{"the server dies", dying, ann},
	{"locks lost, the same request", pausing, ann},
	{"locks lost, another payment", pausing, bob},
}

const (
	atOnce  = 8               // trials
	longest = 3 * time.Minute // a trial, on a machine that is very busy
)

// rehearse prints a line for each step, and returns an error if anything was paid twice, or lost.
func rehearse(ctx context.Context, r rehearsal) error {
	names, err := r.list(ctx)
	if err != nil {
		return err
	}
	cells := make([][]string, len(names))
	var errs []error
	var all sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, atOnce)
	for i := range names {
		cells[i] = make([]string, len(scenes))
		for j, s := range scenes {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				cell, err := r.try(ctx, s, i+1)
				mu.Lock()
				defer mu.Unlock()
				if cells[i][j] = cell; err != nil {
					cells[i][j] = "WRONG"
					errs = append(errs, fmt.Errorf("%s, %s: %w", names[i], s.title, err))
				}
			})
		}
	}
	all.Wait()
	fmt.Printf("Ann pays %d of an order that costs %d. What comes of it, and what the server that had stopped has answered:\n\n%-38s",
		ann.amount, price, "")
	for _, s := range scenes {
		fmt.Printf(" %-30s", s.title)
	}
	fmt.Println()
	for i, name := range names {
		fmt.Printf("%2d %-35s", i+1, name)
		for _, cell := range cells[i] {
			fmt.Printf(" %-30s", cell)
		}
		fmt.Println()
	}
	if len(errs) == 0 {
		fmt.Println("\nEach was paid once, or refused; each answer is that of the database.")
	}
	return errors.Join(errs...)
}

// list returns the names of all steps of a payment.
func (r rehearsal) list(ctx context.Context) (names []string, err error) {
	t, err := r.newTrial(ctx, "list")
	if err != nil {
		return nil, err
	}
	defer t.close()
	// A Redis that has not seen a script yet makes for more steps.
	if _, err := ann.of("42").payUntilAnswered(ctx, t.healthy.URL); err != nil {
		return nil, err
	}
	server, err := t.startServer(ctx, listing, 0)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	if _, err = ann.of(t.order).payUntilAnswered(ctx, server.url); err != nil {
		return nil, err
	}
	for name := range server.lines {
		names = append(names, name)
		if name == lastStep {
			return names, nil
		}
	}
	return nil, errors.New("the last step was not reached")
}

// try returns what came of a payment during which something happens at a step.
func (r rehearsal) try(ctx context.Context, s scene, at int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	t, err := r.newTrial(ctx, string(s.happens)+"-"+s.rival.name+"-"+strconv.Itoa(at))
	if err != nil {
		return "", err
	}
	defer t.close()
	server, err := t.startServer(ctx, s.happens, at)
	if err != nil {
		return "", err
	}
	defer server.stop()
	if s.happens == dying {
		paid, err := ann.of(t.order).payUntilAnswered(ctx, server.url, t.healthy.URL)
		switch {
		case err == nil && paid.requests < 2:
			err = errors.New("the server has not died")
		case err == nil:
			err = t.check(ctx, map[string]answer{ann.name: paid})
		}
		return fmt.Sprintf("paid, %d requests", paid.requests), err
	}
	return t.loseLocks(ctx, server, ann.of(t.order), s.rival.of(t.order))
}

// moment is how long somebody who may have to wait for a stopped server is given.
const moment = 300 * time.Millisecond

// loseLocks has the server that first asks stop, and lose its locks; meanwhile rival asks another one.
func (t *trial) loseLocks(ctx context.Context, server *process, first, rival customer) (string, error) {
	type reply struct {
		answer
		err error
	}
	asked, rivals := make(chan reply, 1), make(chan reply, 1)
	go func() {
		a, _, err := first.askOnce(ctx, server.url)
		asked <- reply{a, err}
	}()
	select {
	case <-server.lines: // it has stopped
	case <-ctx.Done():
		return "", fmt.Errorf("the server has not stopped: %w", ctx.Err())
	}
	if err := t.forgetLocks(ctx); err != nil {
		return "", err
	}
	go func() {
		a, err := rival.payUntilAnswered(ctx, t.healthy.URL)
		rivals <- reply{a, err}
	}()
	select {
	case other := <-rivals:
		rivals <- other
	case <-time.After(moment): // the database has it wait for the stopped server
	}
	server.goOn()
	other, early := <-rivals, <-asked
	late, err := first.payUntilAnswered(ctx, t.healthy.URL)
	if err := errors.Join(other.err, err); err != nil {
		return "", err
	}
	answers := map[string]answer{first.name: late, rival.name: other.answer}
	if first == rival && other.body != late.body {
		return "", fmt.Errorf("answered %q, and then %q", other.body, late.body)
	}
	if early.err == nil && early.isPaid() && early.body != late.body {
		return "", fmt.Errorf("answered %q, and then %q", early.body, late.body)
	}
	payer := first.name
	if !late.isPaid() {
		payer = rival.name
	}
	return fmt.Sprintf("paid by %s, %d", payer, early.status), t.check(ctx, answers)
}

// databaseOf is the database of a trial: that of all, or a file.
func (r rehearsal) databaseOf(name string) string {
	if r.database != "" {
		return r.database
	}
	return filepath.Join(r.folder, name+".db")
}

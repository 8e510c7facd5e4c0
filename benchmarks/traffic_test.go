package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// lockAgain asks once more where a call has missed its wake-up, which a peer may wait
// for without an end.
func lockAgain(ctx context.Context, l locker) (h held, err error) {
	for range 60 {
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		h, err = l.lock(bounded, disputed(0))
		if err == nil {
			context.AfterFunc(ctx, cancel) // a lock may end with its context
			return h, nil
		}
		cancel()
	}
	return nil, err
}

// The number of commands is made of the names in INFO. MONITOR knows better which
// command came from a client, but costs too much to be used while measuring.
func TestTrafficIsWhatMonitorSees(t *testing.T) {
	for _, lib := range libraries {
		t.Run(lib.name, func(t *testing.T) {
			server := redistest.Start(t)
			l, err := lib.open(server.Addr(), settings{})
			if err != nil {
				t.Fatal(err)
			}
			observer := observe(server.Addr())
			defer observer.close()
			contend := func() {
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						for range 20 {
							h, err := lockAgain(t.Context(), l)
							if err == nil {
								err = h.unlock()
							}
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
			}
			contend() // MONITOR does not see how connections begin

			monitor := server.Monitor(t)
			before, err := observer.snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			contend()
			if err := l.close(); err != nil {
				t.Fatal(err)
			}
			after, err := observer.snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			var seen int64
			for _, line := range betweenSnapshots(monitor.Stop(t)) {
				if !line.Lua && !slices.Contains([]string{"client", "hello", "config"}, line.Name()) {
					seen++
				}
			}
			counted := lib.traffic(before, after)
			for command, n := range after.calls {
				if command == "hello" || len(command) > 7 && command[:7] == "client|" {
					counted -= n - before.calls[command]
				}
			}
			if counted != seen {
				t.Errorf("counted %d commands, MONITOR saw %d; calls before %v, after %v", counted, seen, before.calls, after.calls)
			}
			least := int64(80)
			if isOurs(lib.name) {
				least = 2 // it passes the lock on in memory
			}
			if counted < least {
				t.Errorf("80 cycles in %d commands", counted)
			}
		})
	}
}

// betweenSnapshots are the commands between the first INFO and the last: those that
// the one has not counted yet, and the other has.
func betweenSnapshots(lines []redistest.MonitorLine) []redistest.MonitorLine {
	isInfo := func(l redistest.MonitorLine) bool { return l.Name() == "info" }
	first := slices.IndexFunc(lines, isInfo)
	last := len(lines)
	for last > 0 && !isInfo(lines[last-1]) {
		last--
	}
	if first < 0 || last <= first+1 {
		return nil
	}
	return lines[first+1 : last-1]
}

func TestParseInfo(t *testing.T) {
	s, err := parseInfo("# Memory\r\nused_memory:1024\r\nused_memory_human:1K\r\n# Keyspace\r\ndb0:keys=9,expires=7,avg_ttl=29000\r\n" +
		"# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:9\r\n\r\n# Commandstats\r\n" +
		"cmdstat_evalsha:calls=10,usec=3,usec_per_call=0.3,rejected_calls=0,failed_calls=1\r\n" +
		"cmdstat_client|setname:calls=2,usec=3,usec_per_call=0.3,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_set:calls=7,usec=3,usec_per_call=0.3,rejected_calls=0,failed_calls=0\r\n")
	if err != nil || s.cpu != 3.75 || s.memory != 1024 || s.leases != 7 {
		t.Fatalf("cpu %v, memory %v, leases %v, %v, want 3.75, 1024 and 7", s.cpu, s.memory, s.leases, err)
	}
	// For redsync SET is a command of its own, for the floor it is part of a script.
	if n := floorLibrary.traffic(snapshot{}, s); n != 12 {
		t.Errorf("the floor sent %d commands, want 12", n)
	}
	if n := redsyncLibrary.traffic(snapshot{}, s); n != 19 {
		t.Errorf("redsync sent %d commands, want 19", n)
	}
}

func TestExclusionIsChecked(t *testing.T) {
	a := new(arena)
	key := []*atomic.Int64{&a.inUse[0]}
	alone, reader, permit := spot{inUse: key}, spot{inUse: key, form: form{Shared: true}}, spot{inUse: key, form: form{Permits: 2}}
	for _, c := range []struct {
		inside []spot
		want   int64
	}{
		{[]spot{alone, alone}, 1},
		{[]spot{alone, reader}, 1},
		{[]spot{reader, reader, alone}, 1},
		{[]spot{reader, reader, reader}, 0},
		{[]spot{permit, permit}, 0},
		{[]spot{permit, permit, permit}, 1},
		{[]spot{{inUse: append(key, &a.inUse[1])}, {inUse: []*atomic.Int64{&a.inUse[1]}}}, 1},
	} {
		a.violations.Store(0)
		for _, s := range c.inside {
			a.enter(s)
		}
		if n := a.violations.Load(); n != c.want {
			t.Errorf("%+v inside: %d violations, want %d", c.inside, n, c.want)
		}
		for _, s := range c.inside {
			a.leave(s)
		}
	}
	if n := a.inUse[0].Load() + a.inUse[1].Load(); n != 0 {
		t.Errorf("%d inside when all have left", n)
	}
	m := measured{row: row{name: "x"}, rounds: map[string][]figures{floorName: {{violationCount: 1}}}}
	if err := (report{rows: []measured{m}}).exclusion(); err == nil {
		t.Error("a violation does not fail the run")
	}
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// observer reads from Redis what a run has cost it. Its own INFO is not counted.
type observer struct{ client *redis.Client }

func observe(addr string) observer {
	return observer{redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})}
}

func (o observer) close() error { return o.client.Close() }

// reset empties Redis before the next contestant. Scripts stay loaded.
func (o observer) reset(ctx context.Context) error { return o.client.FlushAll(ctx).Err() }

// snapshot is what Redis has counted up to a moment.
type snapshot struct {
	calls map[string]int64 // by command; subcommands as "client|setinfo"
	cpu   float64          // seconds, user and system, of the whole process

	memory float64 // bytes in use
	leases float64 // keys that have an end
}

func (o observer) snapshot(ctx context.Context) (snapshot, error) {
	text, err := o.client.Info(ctx, "commandstats", "cpu", "memory", "keyspace").Result()
	if err != nil {
		return snapshot{}, err
	}
	return parseInfo(text)
}

func parseInfo(text string) (snapshot, error) {
	s := snapshot{calls: map[string]int64{}}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		switch command, isStat := strings.CutPrefix(name, "cmdstat_"); {
		case isStat:
			first, _, _ := strings.Cut(value, ",")
			n, err := strconv.ParseInt(strings.TrimPrefix(first, "calls="), 10, 64)
			if err != nil {
				return s, fmt.Errorf("INFO commandstats: %q: %w", lines.Text(), err)
			}
			s.calls[command] = n
		case name == "used_cpu_user" || name == "used_cpu_sys":
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return s, fmt.Errorf("INFO cpu: %q: %w", lines.Text(), err)
			}
			s.cpu += seconds
		case name == "used_memory":
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return s, fmt.Errorf("INFO memory: %q: %w", lines.Text(), err)
			}
			s.memory = n
		case name == "db0":
			if _, err := fmt.Sscanf(value, "keys=%f,expires=%f", new(float64), &s.leases); err != nil {
				return s, fmt.Errorf("INFO keyspace: %q: %w", lines.Text(), err)
			}
		}
	}
	return s, lines.Err()
}

// always are commands that only clients send, whatever the library.
var always = []string{
	"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "multi", "exec", "wait", "ping", "hello", "auth",
	"select", "command", "readonly", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe",
}

// traffic is the number of commands that the clients of a library sent between
// two snapshots. A script counts as one, and so does a subscription.
//
// Redis 7 counts what a script calls too, in total_commands_processed as well
// as in commandstats, each under its own name. So only those are summed up that
// no script calls: the list above, and for a library that also sends plain
// commands, those that its scripts do not contain. TestTrafficIsWhatMonitorSees
// holds that against MONITOR for each library.
func (l library) traffic(before, after snapshot) int64 {
	var sum int64
	for command, n := range after.calls {
		if slices.Contains(always, command) || slices.Contains(l.sends, command) ||
			strings.HasPrefix(command, "client|") || strings.HasPrefix(command, "script|") {
			sum += n - before.calls[command]
		}
	}
	return sum
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// countedCycles are those of a round.
const countedCycles = 4096

// instructions is the row of what Redis has to do for a cycle, in machine instructions, which
// callgrind counts: they do not depend on what else the machine does.
func instructions() row {
	return row{
		name:      "instructions-1",
		title:     "Instructions in Redis, 1 goroutine",
		libraries: []string{floorName, latchkeyName, redislockName, redsyncName}, // rueidislock does not get through
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			return b.countInstructions(ctx, func(addr string) (cycler, error) {
				l, err := lib.open(addr, settings{})
				return alone{l}, err
			})
		},
	}.counted()
}

// merged is instructions for calls of which 32 are in one command.
func merged() row {
	return row{
		name:      "instructions-32",
		title:     "Instructions in Redis, 32 calls in a command",
		libraries: []string{floorName, latchkeyName},
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			return b.countInstructions(ctx, func(addr string) (cycler, error) {
				if lib.name == latchkeyName {
					return newBatches(addr)
				}
				l, err := lib.open(addr, settings{})
				return alone{l}, err
			})
		},
	}.counted()
}

func (r row) counted() row {
	r.base, r.columns, r.maxRounds, r.needs = floorName, []figure{instructionsPer}, 1, "valgrind"
	return r
}

// cycler takes locks that nobody disputes, and releases them, so many times.
type cycler interface {
	cycles(ctx context.Context, n int) error
	close() error
}

// countInstructions has a cycler work on a server of its own.
func (b *bench) countInstructions(ctx context.Context, open func(addr string) (cycler, error)) (figures, error) {
	dir, err := os.MkdirTemp("", "latchkey-callgrind-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	server, err := startCounted(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer server.kill()
	c, err := open(server.addr)
	if err != nil {
		return nil, err
	}
	cycles := max(countedCycles/b.divide, batchSize)
	err = c.cycles(ctx, cycles) // scripts are loaded, connections open
	if err == nil {
		err = firstError(server.count("on"), c.cycles(ctx, cycles), server.count("off"))
	}
	if err := firstError(err, c.close()); err != nil {
		return nil, err
	}
	total, err := server.total()
	return figures{instructionsPer: float64(total) / float64(cycles)}, err
}

// alone is a goroutine with a library.
type alone struct{ locker }

func (a alone) cycles(ctx context.Context, n int) error {
	for i := range n {
		h, err := a.lock(ctx, fmt.Sprint("order:", i%keysEach))
		if err == nil {
			err = h.unlock()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batchSize is how many calls a command of batches has.
const batchSize = 32

// batches sends core's scripts as core does when calls of many goroutines come together.
type batches struct {
	client     *redis.Client
	take, free string
	keys       []any // locks, queues, fencing clocks
}

func newBatches(addr string) (*batches, error) {
	b := &batches{}
	for name, text := range map[string]*string{redistest.Merged["acquire"]: &b.take, redistest.Merged["release"]: &b.free} {
		var err error
		if *text, _, err = redistest.ReadScript(name); err != nil {
			return nil, err
		}
	}
	for _, form := range []string{"lock:order:%d", "lock:{lock:order:%d}:queue", "lock:latchkey:clock:{%03d}"} {
		for i := range batchSize {
			b.keys = append(b.keys, fmt.Sprintf(form, i))
		}
	}
	b.client = redis.NewClient(&redis.Options{Addr: addr})
	return b, nil
}

func (b *batches) close() error { return b.client.Close() }

func (b *batches) cycles(ctx context.Context, n int) error {
	process := uuid.NewString()
	for i := 0; i < n; i += batchSize {
		var owners []any
		for k := range batchSize {
			owners = append(owners, fmt.Sprintf("%s:%d", process, i+k))
		}
		token, err := b.run(ctx, b.take, b.keys, owners)
		if err != nil {
			return err
		}
		var held []any
		for _, owner := range owners {
			held = append(held, owner, fmt.Sprint("x", strings.TrimSuffix(fmt.Sprint(token), fmt.Sprint(owners[0]))))
		}
		free, err := b.run(ctx, b.free, b.keys[:batchSize], held)
		if heard, _ := free.([]any); err != nil || !slices.Equal(heard, slices.Repeat(owners[:1], batchSize)) {
			return fmt.Errorf("the release said %v, %w", free, err)
		}
	}
	return nil
}

func (b *batches) run(ctx context.Context, script string, keys, args []any) (any, error) {
	line := append([]any{"evalsha", redistest.Digest(script), len(keys)}, append(slices.Clip(keys), args...)...)
	reply, err := b.client.Do(ctx, line...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		line[0], line[1] = "eval", script
		reply, err = b.client.Do(ctx, line...).Result()
	}
	return reply, err
}

// counted is a redis-server under callgrind.
type counted struct {
	addr string
	dir  string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

func startCounted(ctx context.Context, dir string) (*counted, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &counted{addr: free.Addr().String(), dir: dir}
	_, port, _ := net.SplitHostPort(s.addr)
	if err := free.Close(); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, "valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file="+s.file(),
		"redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--hz", "1")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			return s, c.Close()
		}
		if ctx.Err() != nil || time.Now().After(end) {
			s.kill()
			return nil, fmt.Errorf("redis-server under valgrind: %w\n%s", err, &s.log)
		}
	}
}

func (s *counted) file() string { return filepath.Join(s.dir, "callgrind.out") }

// count switches the counting on or off.
func (s *counted) count(how string) error {
	out, err := exec.Command("callgrind_control", "--instr="+how, strconv.Itoa(s.cmd.Process.Pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("callgrind_control: %w\n%s", err, out)
	}
	return nil
}

var totals = regexp.MustCompile(`(?m)^totals: (\d+)$`)

// total ends the server and returns what was counted.
func (s *counted) total() (int64, error) {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return 0, err
	}
	_ = s.cmd.Wait() // its status is that of a signal
	out, err := os.ReadFile(s.file())
	if err != nil {
		return 0, err
	}
	found := totals.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("%s has no totals\n%s", s.file(), &s.log)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// kill ends a server that has not ended yet.
func (s *counted) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// Package limitedlog writes at most one line a second of each kind to a log: in an outage everything fails at once. What
// that leaves out comes in the next one, which is at most a second late.
package limitedlog

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxKeys bounds the keys in a line, in bytes: collectors of logs cut long lines.
const maxKeys = 8 << 10

// maxCauses bounds what is remembered of rare lines.
const maxCauses = 100

// Log is safe for concurrent use. The zero value is ready.
type Log struct {
	Logger func() *slog.Logger         // asked for each line; nil: slog.Default
	After  func(time.Duration, func()) // calls a function later; nil: as time.AfterFunc does
	Put    func(func()) bool           // calls a function soon, in their order, or is false; nil: who logs waits for the handler

	unwritten atomic.Int64 // lines that Put did not take, or whose handler panicked, since the last that was written

	mu     sync.Mutex
	kinds  map[string]*written
	causes map[string]time.Time // when a line of a kind and cause was written, of those that are to be rare
	closed bool
}

// written is what was written of a kind.
type written struct {
	at   time.Time // the last line
	next *line     // nil: nothing was left out since
}

// line is the first one that was left out, and what is known of those after it.
type line struct {
	ctx      context.Context
	logger   *slog.Logger
	level    slog.Level
	kind     string
	args     []any
	complete func(write func(more ...any)) // nil: args are all
	omitted  int                           // those after it
	keys     []string                      // its own, and then theirs, each once
	bytes    int                           // of the keys
	more     int                           // lines whose keys have no room
}

// Limited writes a line, unless there was one of the same kind in the last second. When that is over, it writes the first of
// those that came meanwhile, which says how many others did, and their keys: the arguments that are called so. A kind always
// has the same arguments. The line has the values of the context, however that ends.
func (l *Log) Limited(ctx context.Context, level slog.Level, kind string, args ...any) {
	l.Completed(ctx, level, kind, nil, args...)
}

// Rarely is Limited for what is tried again and again until somebody mends it: for each cause there is at most one line a minute,
// and nothing tells of those between.
func (l *Log) Rarely(ctx context.Context, level slog.Level, kind, cause string, args ...any) {
	l.mu.Lock()
	last, now := l.causes[kind+cause], time.Now()
	if l.causes == nil || len(l.causes) == maxCauses {
		l.causes = map[string]time.Time{}
	}
	due := now.Sub(last) >= time.Minute
	if due {
		l.causes[kind+cause] = now
	}
	l.mu.Unlock()
	if due {
		l.Limited(ctx, level, kind, args...)
	}
}

// Completed is Limited for a line of which complete finds more out, at once or in the background, when it is to be written.
// It has to call write once.
func (l *Log) Completed(ctx context.Context, level slog.Level, kind string, complete func(write func(more ...any)), args ...any) {
	n := &line{ctx: ctx, logger: l.logger(), level: level, kind: kind, args: args, complete: complete, keys: []string{keyOf(args)}}
	if !l.leavesOut(n) {
		l.write(n)
	}
}

// leavesOut says that a line is not to be written now.
func (l *Log) leavesOut(n *line) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	w := l.kinds[n.kind]
	if w == nil {
		w = &written{}
		if l.kinds == nil {
			l.kinds = map[string]*written{}
		}
		l.kinds[n.kind] = w
	}
	rest := time.Second - time.Since(w.at)
	switch {
	case w.next != nil:
		w.next.omit(n.keys[0])
	case rest > 0:
		w.next = n
		l.after(rest, func() { l.writeNext(w) })
	default:
		w.at = time.Now()
		return false
	}
	return true
}

func (l *Log) after(d time.Duration, f func()) {
	if l.After == nil {
		time.AfterFunc(d, f)
		return
	}
	l.After(d, f)
}

// writeNext writes what was left out of a kind.
func (l *Log) writeNext(w *written) {
	l.mu.Lock()
	next := w.next
	if next != nil {
		w.next, w.at = nil, time.Now()
	}
	l.mu.Unlock()
	if next != nil {
		l.write(next)
	}
}

// Close writes what was left out. Nothing is left out from now on, for nobody would write it.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for _, w := range l.kinds { // which nobody changes any more
		l.writeNext(w)
	}
}

func (l *Log) write(n *line) {
	write := func(more ...any) {
		args := slices.Concat(n.args, more)
		if n.omitted > 0 {
			args = append(args, "omitted", n.omitted)
		}
		if len(n.keys) > 1 {
			args = append(args, "omitted_keys", n.keys[1:])
		}
		if n.more > 0 {
			args = append(args, "more_keys", n.more)
		}
		l.hand(n.ctx, n.logger, n.level, n.kind, args)
	}
	if n.complete == nil {
		write()
		return
	}
	n.complete(write)
}

// Each writes a line, however many there were.
func (l *Log) Each(ctx context.Context, level slog.Level, kind string, args ...any) {
	l.hand(ctx, l.logger(), level, kind, args)
}

// hand hands a line to its handler, which others have written: it may panic, and what waits for it may have to wait for ever.
func (l *Log) hand(ctx context.Context, logger *slog.Logger, level slog.Level, kind string, args []any) {
	var caller [1]uintptr
	runtime.Callers(1, caller[:])
	r := slog.NewRecord(time.Now(), level, "latchkey: "+kind, caller[0])
	r.Add(args...)
	write := func() {
		before, done := int64(0), false
		defer func() {
			if _ = recover(); !done {
				l.unwritten.Add(before + 1)
			}
		}()
		if ctx := context.WithoutCancel(ctx); logger.Enabled(ctx, level) {
			if before = l.unwritten.Swap(0); before > 0 {
				r.Add("unwritten_lines", before)
			}
			_ = logger.Handler().Handle(ctx, r)
		}
		done = true
	}
	if l.Put == nil {
		write()
	} else if !l.Put(write) {
		l.unwritten.Add(1)
	}
}

func (l *Log) logger() *slog.Logger {
	if l.Logger == nil {
		return slog.Default()
	}
	return l.Logger()
}

// omit counts a line that comes after it, with that key.
func (n *line) omit(key string) {
	n.omitted++
	switch {
	case slices.Contains(n.keys, key):
	case n.bytes+len(key) > maxKeys:
		n.more++
	default:
		n.bytes += len(key)
		n.keys = append(n.keys, key)
	}
}

// keyOf is the key in the arguments of a line; empty: they have none.
func keyOf(args []any) string {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == "key" {
			key, _ := args[i+1].(string)
			return key
		}
	}
	return ""
}

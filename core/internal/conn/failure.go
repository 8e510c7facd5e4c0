package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Outcome is what is known of a command that failed.
type Outcome int

const (
	// Unknown: it may have run, or may yet.
	Unknown Outcome = iota
	// NotSent: it surely never left this process, and never will.
	NotSent
	// Refused: Redis answered with an error and did nothing, or the client is closed.
	Refused
)

// Failure is the error of a command.
type Failure struct {
	Outcome Outcome
	Cause   error
}

func (f *Failure) Error() string { return f.Cause.Error() }
func (f *Failure) Unwrap() error { return f.Cause }

// Failed tells the outcome from its cause alone: Refused or Unknown.
func Failed(cause error) *Failure {
	if isRefusal(cause) {
		return &Failure{Refused, cause}
	}
	return &Failure{Unknown, cause}
}

// OutcomeOf is that of the first Failure that err wraps, or else what [Failed] would make of err.
func OutcomeOf(err error) Outcome {
	if f := (*Failure)(nil); errors.As(err, &f) {
		return f.Outcome
	}
	return Failed(err).Outcome
}

// ErrNoAnswer is the cause when Redis took longer than the timeout.
var ErrNoAnswer = errors.New("no answer in time")

// explain gives an error its kind that came of the end of the time. Unless the command has left, as far as is
// known, the error says whether it may have lacked a connection.
func (s *Server) explain(err error, q *Queued, end time.Time) error {
	if err != ErrNoAnswer && (!isTimeout(err) || time.Now().Before(end)) {
		return err
	}
	why, d := "", q.dispatch
	if c, ok := s.ClientFor(q.Command.key()).(*redis.Client); ok && (d == nil || !d.is(written)) {
		if size, pool := c.Options().PoolSize, c.PoolStats(); pool.IdleConns == 0 && int(pool.TotalConns) >= size {
			why = fmt.Sprintf(": all %d connections of the client's pool are in use", size)
		}
	}
	if err != ErrNoAnswer {
		why += ": " + err.Error()
	}
	return fmt.Errorf("%w%s", ErrNoAnswer, why)
}

// IsClosed reports whether the client is closed: it will never work again.
func IsClosed(err error) bool { return errors.Is(err, redis.ErrClosed) }

// IsTransient reports whether Redis has done nothing, for a reason that may be over in a moment.
func IsTransient(err error) bool { return hasPrefix(err, transient...) }

// transient and refusing are how errors begin by which Redis and Valkey say that they did not run a script, or refused its
// first command that writes; or a later one, for which the user lacks a right: scripts leave nothing then that lasts. What any
// other error means nobody knows: a proxy has texts of its own for a server that is slow, and may have run the script.
var (
	transient = []string{"READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "max number of clients"}

	refusing = []string{"NOSCRIPT", "NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "MOVED", "ASK", "CROSSSLOT", "WRONGTYPE", "OOM", "MISCONF",
		"unknown command", "The user executing the script", "ACL failure in script:"}
)

// notHere are those of transient by which a server says that another may have the keys by now. A node of a cluster that was
// demoted says READONLY, and not MOVED, to a client that reads from replicas.
var notHere = []string{"READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN"}

func isUnknownScript(err error) bool { return hasPrefix(err, "NOSCRIPT") }

// hasPrefix says that Redis answered with an error that begins with such words.
func hasPrefix(err error, prefixes ...string) bool {
	if err == nil {
		return false // without the memory that errors.As takes
	}
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	text := strings.TrimPrefix(answer.Error(), "ERR ")
	if strings.HasPrefix(text, "Error running script") { // before Redis 7, then comes what the command said
		text = strings.TrimPrefix(text[strings.LastIndex(text, ": ")+2:], "-")
	}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text+" ", prefix+" ") })
}

// IsMoved reports whether a node of a cluster has done nothing because another one has the key.
func IsMoved(err error) bool { return hasPrefix(err, "MOVED") }

// isRefusal says that Redis answered with an error and did nothing, or that the client did, which is closed.
func isRefusal(err error) bool {
	if err == nil {
		return false // as in hasPrefix
	}
	var short shortfall
	return IsClosed(err) || (IsTransient(err) || hasPrefix(err, refusing...)) && !errors.As(err, &short)
}

// isBroken says that a connection has ended, and that the next one may hold.
func isBroken(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed} {
		if errors.Is(err, end) {
			return true
		}
	}
	var failed *net.OpError
	return errors.As(err, &failed) && (failed.Op == "read" || failed.Op == "write") && !failed.Timeout()
}

// isTimeout says that a command failed because its time was over, or that of its context.
func isTimeout(err error) bool {
	if err == nil {
		return false // as in hasPrefix
	}
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// Ended joins what a context that has ended says with why it was cancelled.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Pause waits for d. It returns the context's error when that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

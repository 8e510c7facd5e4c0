// Latchkey looks at locks in Redis, frees them, and runs commands under them:
//
//	latchkey ls [-state s] [-held-for d] [-waiting] [-json] [PART]
//	                                  lists the locks, or those with PART in their key, those in a state, those
//	                                  that were held for long, or those that processes wait for
//	latchkey show [-idempotent scope] [-escaped] [-json] KEY
//	                                  shows who has a lock and who waits for it, or that of the request with
//	                                  an Idempotency-Key
//	latchkey unlock [-y] [-owner o] [-escaped] KEY
//	                                  frees a lock, whoever has it, or evicts one of several holders;
//	                                  asks first
//	latchkey run [-wait d] [-lease d] [-keep d] [-E n] KEY -- COMMAND [ARGUMENT...]
//	                                  runs a command while it holds a lock
//	latchkey version                  shows its version
//
// Keys are written as programs write them, without the prefix in Redis. The flags -redis and
// -prefix, before or after ls, show, unlock or run, say where the locks are; the environment variables
// LATCHKEY_REDIS and LATCHKEY_PREFIX do so as well, and keep a password out of the list of processes. An address
// is host:port, or a URL as go-redis parses it: redis://, rediss://, unix://, with addr=… of
// further nodes for a cluster, with master_name=… for Sentinel.
//
// KEY must stand directly before the --, and cannot begin with a dash there: a script's variable
// that is empty, or looks like a flag, is refused. The command of run gets LATCHKEY_KEY and LATCHKEY_TOKEN,
// the fencing token, in its environment, and not LATCHKEY_REDIS. It runs in a process group of its own, which gets the signals that latchkey
// gets; where there is a terminal it stays in the terminal's, so that it can ask there. If the lock is lost the
// group is sent SIGTERM, and SIGKILL after 5 s. The lock is released when the command has ended, and all that it has
// started and that has, as with flock, not closed what it inherits; a signal ends that wait after 5 s. With
// -keep it stays taken afterwards, until so long after it was taken, if the command has ended with 0. On
// Linux the command is killed when latchkey is, but not what it has started, nor a set-user-ID program. A command that
// has become another user's, as by sudo, gets no signal: that is said on the standard error, and it goes on.
//
// Exit codes of run are those of flock(1): the command's own, or 128 and the number of
// the signal that has ended it; 1 or that of -E when the lock is busy; 64 for wrong usage; 69 when
// Redis does not answer or the command cannot be started. 75 says that the lock was lost while the command
// ran, whatever the command says. Exit codes of the others are 0, 64, 69, and 1 for a lock
// that show finds free, or that unlock has not freed.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"runtime"

	"github.com/latchkey-go/latchkey/core"
)

// Exit codes, as of flock(1) and sysexits.h.
const (
	exitBusy        = 1
	exitFree        = 1 // of show and unlock
	exitUsage       = 64
	exitUnavailable = 69
	exitLost        = 75
	exitSignal      = 128
)

// On Linux a command ends with the thread that has started it, which has to last.
func init() { runtime.LockOSThread() }

func main() {
	p := &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.main(os.Args[1:]))
}

// program is latchkey with its standard files.
type program struct {
	redis, prefix  string
	stdin          io.Reader
	stdout, stderr io.Writer
}

const usage = `usage:
       latchkey ls [-state s] [-held-for d] [-waiting] [-json] [PART]
       latchkey show [-idempotent scope] [-escaped] [-json] KEY
       latchkey unlock [-y] [-owner o] [-escaped] KEY
       latchkey run [-wait d] [-lease d] [-keep d] [-E n] KEY -- COMMAND [ARGUMENT...]
       latchkey version

With -help each of them lists its flags. Keys are written without the prefix.
Redis is at -redis or LATCHKEY_REDIS: host:port, or redis://, rediss://, unix://.
`

// errUsage is for what is wrong with the command line.
var errUsage = errors.New("wrong usage")

func (p *program) main(args []string) int {
	p.prefix = "lock:"
	if prefix, set := os.LookupEnv("LATCHKEY_PREFIX"); set {
		p.prefix = prefix
	}
	exit, err := p.dispatch(context.Background(), args)
	switch {
	case err == nil:
		return exit
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage), errors.Is(err, core.ErrInvalidKey):
		fmt.Fprintf(p.stderr, "latchkey: %s\n%s", core.Detail(err), usage)
		return exitUsage
	default:
		fmt.Fprintf(p.stderr, "latchkey: %s\n", core.Detail(err))
		return cmp.Or(exit, exitUnavailable)
	}
}

// dispatch returns an exit code, or an error, which has the code 69 where it has none.
func (p *program) dispatch(ctx context.Context, args []string) (exit int, err error) {
	f := p.flags("latchkey")
	if err := p.parse(f, args, 0, math.MaxInt); err != nil {
		return 0, err
	}
	if f.NArg() == 0 {
		return 0, errUsage
	}
	switch args := f.Args()[1:]; f.Arg(0) {
	case "ls":
		return p.list(ctx, args)
	case "show":
		return p.show(ctx, args)
	case "unlock":
		return p.unlock(ctx, args)
	case "run":
		return p.run(ctx, args)
	case "version":
		fmt.Fprintln(p.stdout, version())
		return 0, nil
	case "help":
		return p.dispatch(ctx, append(args, "-help"))
	default:
		return 0, fmt.Errorf("%w: there is no %q", errUsage, f.Arg(0))
	}
}

// flags are those that may come anywhere before an argument.
func (p *program) flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // main says what is wrong
	f.StringVar(&p.redis, "redis", p.redis, "`address` of Redis: host:port, or a URL; by default LATCHKEY_REDIS, or localhost:6379")
	f.StringVar(&p.prefix, "prefix", p.prefix, "what the `names` of locks begin with in Redis, also LATCHKEY_PREFIX")
	return f
}

// key reads the flags, and a KEY.
func (p *program) key(f *flag.FlagSet, args []string) (key string, err error) {
	escaped := f.Bool("escaped", false, "KEY is escaped as in a URL's query, and in the JSON of a key that is not UTF-8")
	if err := p.parse(f, args, 1, 1); err != nil || !*escaped {
		return f.Arg(0), err
	}
	if key, err = url.QueryUnescape(f.Arg(0)); err != nil {
		return "", fmt.Errorf("%w: -escaped: %w", errUsage, err)
	}
	return key, nil
}

// parse reads the flags, and as many arguments as are needed.
func (p *program) parse(f *flag.FlagSet, args []string, least, most int) error {
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(p.stdout)
		fmt.Fprint(p.stdout, usage, "\nFlags of ", f.Name(), ":\n")
		f.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, err)
	case f.NArg() < least:
		return fmt.Errorf("%w: KEY is missing", errUsage)
	case f.NArg() > most:
		return fmt.Errorf("%w: %q is too much; flags come before KEY, and a KEY with spaces is one word in quotes", errUsage, f.Arg(most))
	}
	return nil
}

// Latchkey looks at locks in Redis, frees them, and runs commands under them:
//
//	latchkey ls [PART]                lists the locks, or those with PART in their key
//	latchkey show KEY                 shows who has a lock
//	latchkey unlock [-y] KEY          frees a lock, whoever has it; asks first
//	latchkey run [-wait d] [-lease d] [-keep d] [-E n] [-kill-after d] KEY -- COMMAND [ARGUMENT...]
//	                                  runs a command while it holds a lock
//
// Keys are written as programs write them, without the prefix in Redis. The flags -redis and
// -prefix of each command say where the locks are; the environment variables LATCHKEY_REDIS
// and LATCHKEY_PREFIX do so as well, and keep a password out of the list of processes. An address
// is host:port, or a URL as go-redis parses it: redis://, rediss://, unix://, with addr=… of
// further nodes for a cluster, with master_name=… for Sentinel.
//
// The command of run gets LATCHKEY_KEY and LATCHKEY_TOKEN, the fencing token, in its
// environment. It runs in a process group of its own, which gets the signals that latchkey
// gets; where the standard input is a terminal it stays in the terminal's. If the lock is lost the
// group is sent SIGTERM, and SIGKILL after -kill-after. The lock is released when the command ends. With
// -keep it stays taken afterwards, until so long after it was taken, if the command has ended with 0. On
// Linux the command is killed when latchkey is, but not what it has started.
//
// Exit codes of run are those of flock(1): the command's own, or 128 and the number of
// the signal that has ended it; 1 or that of -E when the lock is busy; 64 for wrong usage; 69 when
// Redis does not answer or the command cannot be started. 75 says that the lock was lost while the command
// ran, whatever the command says. Exit codes of the others are 0, 64, 69, and 1 for a lock
// that unlock has not freed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/latchkey-go/latchkey/core"
)

// Exit codes, as of flock(1) and sysexits.h.
const (
	exitBusy        = 1
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
       latchkey ls [PART]
       latchkey show KEY
       latchkey unlock [-y] KEY
       latchkey run [-wait d] [-lease d] [-keep d] [-E n] [-kill-after d] KEY -- COMMAND [ARGUMENT...]

latchkey COMMAND -help lists the flags of a command. Keys are written without the prefix.
Redis is at -redis or LATCHKEY_REDIS: host:port, or redis://, rediss://, unix://.
`

// errUsage is for what is wrong with the command line.
var errUsage = errors.New("wrong usage")

func (p *program) main(args []string) (exit int) {
	commands := map[string]func(context.Context, []string) (int, error){
		"ls": p.list, "show": p.show, "unlock": p.unlock, "run": p.run,
	}
	if len(args) == 1 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(p.stdout, usage)
		return 0
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(p.stderr, usage)
		return exitUsage
	}
	exit, err := commands[args[0]](context.Background(), args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage), errors.Is(err, core.ErrInvalidKey):
		fmt.Fprintf(p.stderr, "latchkey %s: %s\n%s", args[0], core.Detail(err), usage)
		return exitUsage
	case err != nil:
		fmt.Fprintf(p.stderr, "latchkey: %s\n", core.Detail(err))
	}
	return exit
}

// flags are those of a command, with those that all have.
func (p *program) flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet("latchkey "+name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // main says what is wrong
	f.StringVar(&p.redis, "redis", "", "`address` of Redis: host:port, or a URL; by default LATCHKEY_REDIS, or localhost:6379")
	prefix, set := os.LookupEnv("LATCHKEY_PREFIX")
	if !set {
		prefix = "lock:"
	}
	f.StringVar(&p.prefix, "prefix", prefix, "what the names of locks begin with in Redis; by default LATCHKEY_PREFIX, or lock:")
	return f
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
	case f.NArg() < least, f.NArg() > most:
		return fmt.Errorf("%w: %d arguments", errUsage, f.NArg())
	}
	return nil
}

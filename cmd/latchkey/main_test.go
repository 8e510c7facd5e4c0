package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// patience ends tests that hang.
const patience = 2 * time.Minute

// killsAfter is the variable that says how long a command may take to end.
const killsAfter = "TEST_KILLS_AFTER"

// The binary of the test is latchkey, too.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_AS_LATCHKEY") != "" {
		if d, err := time.ParseDuration(os.Getenv(killsAfter)); err == nil {
			killAfter = d
		}
		main()
	}
	os.Exit(m.Run())
}

// process is a latchkey that runs.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Reader // of its standard output
	said  bytes.Buffer  // on its standard error
}

// launch starts latchkey.
func launch(t *testing.T, redis string, args ...string) *process {
	t.Helper()
	return start(t, command(t, redis, args...))
}

// command is a latchkey that has not been started.
func command(t *testing.T, redis string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "TEST_AS_LATCHKEY=1", "LATCHKEY_REDIS="+redis)
	leaveTerminal(cmd)
	return cmd
}

// start starts a command, of latchkey.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.said
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hangs := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	t.Cleanup(func() { hangs.Stop(); p.cmd.Process.Kill() })
	return p
}

// next is the next line that it prints.
func (p *process) next() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v after %q; it said %s", err, line, p.said.String())
	}
	return strings.TrimSpace(line)
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits until it has ended, and nobody has its standard output any more.
func (p *process) exit() (code int, rest string) {
	p.t.Helper()
	all, _ := io.ReadAll(p.lines)
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode(), string(all)
}

func TestExitCodesAreThoseOfFlock(t *testing.T) {
	server := redistest.Start(t)
	for _, c := range []struct {
		what string
		args []string
		want int
		says string
	}{
		{"success", []string{"run", "k", "--", "true"}, 0, ""},
		{"failure", []string{"run", "k", "--", "sh", "-c", "exit 3"}, 3, ""},
		{"killed", []string{"run", "k", "--", "sh", "-c", "kill -KILL $$"}, 128 + 9, ""},
		{"no such command", []string{"run", "k", "--", "no-such-command"}, 69, "no-such-command"},
		{"no Redis", []string{"run", "-redis", "127.0.0.1:1", "k", "--", "true"}, 69, "127.0.0.1:1"},
		{"no Redis to list", []string{"ls", "-redis", "127.0.0.1:1"}, 69, "127.0.0.1:1"},
		{"no Redis, said first", []string{"-redis", "127.0.0.1:1", "ls"}, 69, "127.0.0.1:1"},
		{"no command", []string{"run", "k", "--"}, 64, "the command to run is missing"},
		{"only a key", []string{"run", "k"}, 64, "the command to run is missing"},
		{"no key", []string{"run"}, 64, "KEY is missing"},
		{"no time", []string{"ls", "-held-for", "-1m"}, 64, "-held-for -1m0s is negative"},
		{"no key to show", []string{"show"}, 64, "KEY is missing"},
		{"two keys", []string{"show", "a", "b"}, 64, `"b" is too much; flags come before KEY, and a KEY with spaces is one word in quotes`},
		{"without --", []string{"run", "k", "true"}, 64, `"true" is too much`},
		{"two words before --", []string{"run", "k", "j", "--", "true"}, 64, `"j" is too much`},
		{"a flag after the key", []string{"run", "k", "-wait", "0", "--", "true"}, 64, `"-wait" is too much; flags come before KEY`},
		{"the key forgotten", []string{"run", "--", "nice", "echo"}, 64, "KEY is missing"},
		{"the key forgotten after a flag", []string{"run", "-wait", "0", "--", "nice", "echo"}, 64, "-wait"},
		{"a key like a flag", []string{"run", "-E=1", "--", "echo", "pay.sh"}, 64, `KEY is missing: directly before -- is "-E=1"`},
		{"a key like a flag for help", []string{"run", "-help", "--", "echo", "pay.sh"}, 64, "KEY is missing"},
		{"a key like --", []string{"run", "--", "--", "echo", "pay.sh"}, 64, "KEY is missing"},
		{"-- in the command", []string{"run", "k", "--", "sh", "-c", `test "$1" = --`, "sh", "--"}, 0, ""},
		{"no exit code", []string{"run", "-E", "256", "k", "--", "true"}, 64, "-E 256"},
		{"no exit code either", []string{"run", "-E", "-1", "k", "--", "true"}, 64, "-E -1"},
		{"an empty key", []string{"run", "", "--", "true"}, 64, "empty"},
		{"a bad lease", []string{"run", "-lease", "0", "k", "--", "true"}, 64, "Lease(0s)"},
		{"a bad wait", []string{"run", "-wait", "-1s", "k", "--", "true"}, 64, "Wait(-1s)"},
		{"an unknown flag", []string{"run", "-x", "k", "--", "true"}, 64, "-x"},
		{"a bad address", []string{"show", "-redis", "redis://user:secret@host:port%", "k"}, 64, "-redis"},
		{"nothing", nil, 64, "usage:"},
		{"another word", []string{"lock", "k"}, 64, `there is no "lock"`},
	} {
		p := launch(t, server.Addr(), c.args...)
		code, out := p.exit()
		said := p.said.String()
		if code != c.want || !strings.Contains(said, c.says) || c.says == "" && said != "" || strings.Contains(said+out, "secret") {
			t.Errorf("%s: %d, want %d; it said %s", c.what, code, c.want, said)
		}
		if out != "" {
			t.Errorf("%s: something ran, and printed %q", c.what, out)
		}
	}
}

func TestABusyLockIsNotWaitedForLongerThanAskedFor(t *testing.T) {
	server := redistest.Start(t)
	holder := launch(t, server.Addr(), "run", "k", "--", "sh", "-c", "echo ready; exec sleep 1000")
	holder.next()
	for _, c := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{"run", "-wait", "0", "k", "--", "echo", "two at once"}, 1, "not acquired"},
		{[]string{"run", "-wait", "10ms", "k", "--", "echo", "two at once"}, 1, "not acquired"},
		{[]string{"run", "-wait", "0", "-E", "42", "k", "--", "echo", "two at once"}, 42, "not acquired"},
		{[]string{"run", "-wait", "0", "-E", "0", "k", "--", "echo", "two at once"}, 0, ""},
		{[]string{"-prefix", "other:", "run", "-wait", "0", "k", "--", "true"}, 0, ""},
		{[]string{"-prefix", "lock:", "run", "-wait", "0", "-prefix", "other:", "k", "--", "true"}, 0, ""},
	} {
		p := launch(t, server.Addr(), c.args...)
		code, out := p.exit()
		if said := p.said.String(); code != c.want || out != "" || !strings.Contains(said, c.says) || c.says == "" && said != "" {
			t.Errorf("%q: %d, want %d; %s%s", c.args, code, c.want, out, said)
		}
	}
	waiting := launch(t, server.Addr(), "run", "k", "--", "echo", "at last")
	holder.signal(syscall.SIGTERM) // a script that runs the tests in its background has SIGINT ignored
	if line := waiting.next(); line != "at last" {
		t.Error(line)
	}
	if code, _ := waiting.exit(); code != 0 {
		t.Error(code, waiting.said.String())
	}
	holder.exit()
}

func TestTheCommandKnowsItsLock(t *testing.T) {
	server := redistest.Start(t)
	var tokens []string
	for range 2 {
		p := launch(t, server.Addr(), "run", "orderID=7", "--", "sh", "-c", `echo "$LATCHKEY_KEY"; echo "$LATCHKEY_TOKEN"; env | grep REDIS`)
		if key := p.next(); key != "orderID=7" {
			t.Errorf("key %q", key)
		}
		tokens = append(tokens, p.next())
		if _, rest := p.exit(); rest != "" {
			t.Errorf("it knows the address of Redis, in which there may be a password: %s", rest)
		}
	}
	if len(tokens[0]) != 16 || tokens[1] <= tokens[0] {
		t.Errorf("tokens %q", tokens)
	}
}

// After a failure another may try, in the same window.
func TestAWindowFollowsSuccessOnly(t *testing.T) {
	server := redistest.Start(t)
	for i, want := range []string{"failed 1", "done 0", " 1", " 1"} {
		command := "echo done"
		if i == 0 {
			command = "echo failed; exit 1"
		}
		p := launch(t, server.Addr(), "run", "-wait", "0", "-keep", "1h", "report", "--", "sh", "-c", command)
		code, out := p.exit()
		if got := strings.TrimSpace(out) + " " + string(rune('0'+code)); got != want {
			t.Errorf("run %d: %q, want %q", i, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	p := launch(t, "", "version")
	if code, out := p.exit(); code != 0 || !regexp.MustCompile(`^latchkey \S+, go\S+, \w+/\w+\n$`).MatchString(out) {
		t.Errorf("%d, %q", code, out)
	}
}

package redisson

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A java is a process with one Redisson client.
type java struct {
	version, id string

	cmd    *exec.Cmd
	stderr bytes.Buffer
	exited chan struct{}

	mu      sync.Mutex // of all below
	stdin   io.WriteCloser
	number  int
	pending map[string]chan answer
}

// An answer is what became of a request: its result, or an exception.
type answer struct {
	result string
	err    error
}

// An exception is what was thrown in Java.
type exception struct{ name, message string }

func (e *exception) Error() string { return e.name + ": " + e.message }

// notOwner is what Redisson throws at a thread that unlocks what it does not hold.
const notOwner = "IllegalMonitorStateException"

// needJava skips a test where nobody has built the Java side.
func needJava(tb testing.TB) {
	tb.Helper()
	if *target == "" {
		tb.Skip("the Java side is not built: make test-redisson")
	}
}

// startJava runs the Java side, and returns when its client is connected. The
// arguments are those of Peer.java. The process ends with the test.
func startJava(tb testing.TB, args ...string) *java {
	tb.Helper()
	needJava(tb)
	classes := filepath.Join(*target, "classes") + string(filepath.ListSeparator) + filepath.Join(*target, "lib", "*")
	args = append([]string{"-cp", classes, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "latchkey.redisson.Peer"}, args...)
	j := &java{cmd: exec.Command("java", args...), exited: make(chan struct{}), pending: map[string]chan answer{}}
	j.cmd.Stderr = &j.stderr
	var err error
	if j.stdin, err = j.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	stdout, err := j.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := j.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ready := j.expect("ready")
	go j.listen(stdout)
	tb.Cleanup(func() {
		j.kill()
		if tb.Failed() && j.stderr.Len() > 0 {
			tb.Logf("stderr of Java:\n%s", &j.stderr)
		}
	})
	var ok bool
	if j.version, j.id, ok = strings.Cut(await(tb, ready), " "); !ok {
		tb.Fatal("Java did not say who it is")
	}
	return j
}

// kill ends the process as a crash does, and returns when it is gone.
func (j *java) kill() {
	_ = j.cmd.Process.Kill()
	<-j.exited
}

// signal sends the process a signal of that name.
func (j *java) signal(tb testing.TB, name string) {
	tb.Helper()
	succeed(tb, exec.Command("kill", "-"+name, strconv.Itoa(j.cmd.Process.Pid)).Run())
}

// listen reads answers until the process ends.
func (j *java) listen(stdout io.Reader) {
	defer close(j.exited)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		part := strings.Split(lines.Text(), "\t")
		var a answer
		switch {
		case part[0] == "ready" && len(part) == 3:
			a.result = part[1] + " " + part[2]
		case len(part) == 3 && part[1] == "ok":
			a.result = part[2]
		case len(part) == 4 && part[1] == "failed":
			a.err = &exception{part[2], part[3]}
		default:
			a.err = fmt.Errorf("Java says %q", lines.Text())
		}
		j.mu.Lock()
		if c := j.pending[part[0]]; c != nil {
			delete(j.pending, part[0])
			c <- a
		}
		j.mu.Unlock()
	}
	err := j.cmd.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.pending {
		c <- answer{err: fmt.Errorf("Java has ended: %v", err)}
	}
	clear(j.pending)
}

func (j *java) expect(number string) <-chan answer {
	c := make(chan answer, 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending[number] = c
	return c
}

// A javaThread is a thread of that process: it does one thing after the other.
type javaThread struct {
	*java
	name string
}

func (j *java) thread(n int) javaThread { return javaThread{j, strconv.Itoa(n)} }

// begin tells the thread what to do next. The names of locks are those in Redis.
func (j javaThread) begin(command string, args ...any) <-chan answer {
	j.mu.Lock()
	j.number++
	number := strconv.Itoa(j.number)
	c := make(chan answer, 1)
	j.pending[number] = c
	line := []string{number, j.name, command}
	for _, a := range args {
		line = append(line, fmt.Sprint(a))
	}
	_, err := io.WriteString(j.stdin, strings.Join(line, "\t")+"\n")
	if err != nil {
		delete(j.pending, number)
		c <- answer{err: err}
	}
	j.mu.Unlock()
	return c
}

// do has the thread do it, and returns the result. An exception ends the test.
func (j javaThread) do(tb testing.TB, command string, args ...any) string {
	tb.Helper()
	return await(tb, j.begin(command, args...))
}

// gives is do with the wanted result.
func (j javaThread) gives(tb testing.TB, want any, command string, args ...any) {
	tb.Helper()
	if got := j.do(tb, command, args...); got != fmt.Sprint(want) {
		tb.Fatalf("%s %v in Java: %s, want %v", command, args, got, want)
	}
}

// throws is do with an exception.
func (j javaThread) throws(tb testing.TB, want string, command string, args ...any) {
	tb.Helper()
	a := receive(tb, j.begin(command, args...))
	var e *exception
	if !errors.As(a.err, &e) || e.name != want {
		tb.Fatalf("%s %v in Java: %q, %v, want %s", command, args, a.result, a.err, want)
	}
}

// owner is who the thread is in Redis.
func (j javaThread) owner(tb testing.TB) string {
	tb.Helper()
	return j.do(tb, "owner")
}

// ttl is remainTimeToLive.
func (j javaThread) ttl(tb testing.TB, lock string) time.Duration {
	tb.Helper()
	return time.Duration(number(tb, j.do(tb, "ttl", lock))) * time.Millisecond
}

// await returns the result of a request. An exception ends the test.
func await(tb testing.TB, c <-chan answer) string {
	tb.Helper()
	a := receive(tb, c)
	if a.err != nil {
		tb.Fatal(a.err)
	}
	return a.result
}

func receive[T any](tb testing.TB, c <-chan T) T {
	tb.Helper()
	select {
	case got := <-c:
		return got
	case <-time.After(inTheEnd):
		tb.Fatalf("no answer within %v", inTheEnd)
	}
	panic("unreachable")
}

// at is a point in time that Java has told.
func at(tb testing.TB, result string) time.Time {
	tb.Helper()
	return time.UnixMicro(number(tb, result))
}

func number(tb testing.TB, text string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

package dashboard

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait. It is long for a machine that does other things at the
// same time.
const patience = 2 * time.Minute

// program is one that serves at an address of its choice.
type program struct {
	addr string

	mu     sync.Mutex
	output bytes.Buffer
}

// launch runs a program, and returns when it has printed the address that it serves
// at, as the first group of serving says. When the test ends it is interrupted, as by
// Ctrl-C, and has to be gone soon.
func launch(t *testing.T, serving *regexp.Regexp, name string, args ...string) *program {
	t.Helper()
	p := &program{}
	cmd := exec.Command(name, args...)
	cmd.Dir = t.TempDir()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, exited := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(exited)
		p.read(out, serving, found)
		_ = cmd.Wait() // it is interrupted, or what it printed says why it went
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-exited:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-exited
			t.Errorf("%s did not end when interrupted", name)
		}
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, p.printed())
		}
	})
	select {
	case p.addr = <-found:
	case <-exited:
		t.Fatalf("%s ended:\n%s", name, p.printed())
	case <-time.After(patience):
		t.Fatalf("%s names no address:\n%s", name, p.printed())
	}
	return p
}

// read keeps what the program prints, and sends the first address in it.
func (p *program) read(out io.Reader, serving *regexp.Regexp, found chan<- string) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.output.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			select {
			case found <- m[1]:
			default:
			}
		}
	}
}

func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

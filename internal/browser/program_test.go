package browser

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is one that runs, such as an example.
type program struct {
	t      *testing.T
	url    string // without a slash at the end
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of the exit

	mu     sync.Mutex
	output bytes.Buffer
}

var address = regexp.MustCompile(`http://[0-9a-z.:\[\]]+:[0-9]+`)

// launch builds a package of the repository, runs it, and returns once it has
// printed the address it serves at, as http://host:port. Have it serve at
// 127.0.0.1:0. When the test ends the program is interrupted, as by Ctrl-C, and
// has to end without an error.
func launch(t *testing.T, pkg string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(build(t, pkg), args...), exited: make(chan struct{})}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		defer close(p.exited)
		p.read(out, found)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(p.interrupt)
	select {
	case p.url = <-found:
		return p
	case <-p.exited:
		t.Fatalf("%s ended: %v\n%s", pkg, p.err, p.printed())
	case <-time.After(patience):
		t.Fatalf("%s says no address:\n%s", pkg, p.printed())
	}
	return nil
}

// read keeps what the program prints, and sends the first address in it.
func (p *program) read(out io.Reader, found chan<- string) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.output.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		if url := address.FindString(lines.Text()); url != "" {
			select {
			case found <- url:
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

// interrupt ends the program and waits until it is gone. It may be called twice.
func (p *program) interrupt() {
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.exited
		p.t.Errorf("did not end when interrupted:\n%s", p.printed())
		return
	}
	if p.err != nil {
		p.t.Errorf("ended with %v:\n%s", p.err, p.printed())
	}
}

var builds = map[string]string{} // package to binary

// build returns the binary of a package, built once.
func build(t *testing.T, pkg string) string {
	t.Helper()
	if binary, ok := builds[pkg]; ok {
		return binary
	}
	binary := filepath.Join(scratch, strings.ReplaceAll(pkg, "/", "-"))
	cmd := exec.Command("go", "build", "-o", binary, "./"+pkg)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build ./%s: %v\n%s", pkg, err, out)
	}
	builds[pkg] = binary
	return binary
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// nobody is a user that may do nothing.
const nobody = 65534

// The binary of the test is a command that becomes root's as well, as sudo does. It ends with its standard input.
func init() {
	if filepath.Base(os.Args[0]) != "as-root" {
		return
	}
	if err := syscall.Setuid(0); err != nil {
		fmt.Println("not permitted:", err)
		os.Exit(1)
	}
	fmt.Println("ready", os.Getpid())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// setUserID returns this binary twice in a directory that all may read: as it is, and with the set-user-ID bit of root. The
// test is skipped where only root could do that, or a mount ignores the bit.
func setUserID(t *testing.T) (latchkey, asRoot string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root makes a program that is run as root")
	}
	dir, err := os.MkdirTemp("", "latchkey")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	latchkey, asRoot = filepath.Join(dir, "latchkey"), filepath.Join(dir, "as-root")
	if err := errors.Join(
		os.Chmod(dir, 0o755),
		os.WriteFile(latchkey, data, 0o755), os.Chmod(latchkey, 0o755),
		os.WriteFile(asRoot, data, 0o755), os.Chmod(asRoot, 0o755|os.ModeSetuid),
	); err != nil {
		t.Fatal(err)
	}
	try := exec.Command(asRoot)
	try.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := try.Output(); err != nil || !strings.HasPrefix(string(out), "ready") {
		t.Skipf("a set-user-ID program is not run as its owner here: %s, %v", out, err)
	}
	return latchkey, asRoot
}

// A command that has become another user's gets no signal, and is not ended with its lock. That is said at once.
func TestACommandOfAnotherUserIsNotEnded(t *testing.T) {
	latchkey, asRoot := setUserID(t)
	server := redistest.Start(t)
	client := server.Client(t)
	for name, c := range map[string]struct {
		command []string
		signal  bool
		says    string
		code    int
	}{
		"a signal":                   {[]string{asRoot}, true, "NOT SENT to process", 0},
		"the lock is lost":           {[]string{asRoot}, false, "THE LOCK IS LOST", 75},
		"others of its group obey":   {[]string{"sh", "-c", "sleep 1000 & exec " + asRoot}, false, "THE LOCK IS LOST", 75},
		"what the command has begun": {[]string{"sh", "-c", asRoot + " <&3 & wait"}, false, "THE LOCK IS LOST", 75},
	} {
		t.Run(name, func(t *testing.T) {
			input, goesOn, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			defer goesOn.Close()
			said, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer said.Close()
			cmd := exec.Command(latchkey, append([]string{"run", "-lease", "3s", "k", "--"}, c.command...)...)
			cmd.Env = append(os.Environ(), "TEST_AS_LATCHKEY=1", "LATCHKEY_REDIS="+server.Addr())
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = input, said, []*os.File{input}
			p := start(t, cmd)
			pid := pidIn(t, p.next())
			defer syscall.Kill(pid, syscall.SIGKILL)
			if c.signal {
				p.signal(syscall.SIGTERM)
			} else if err := client.Del(t.Context(), "lock:k").Err(); err != nil {
				t.Fatal(err)
			}
			redistest.Await(t, patience, "what it says", func() bool {
				text, err := os.ReadFile(said.Name())
				return err == nil && strings.Contains(string(text), c.says)
			})
			if err := syscall.Kill(pid, 0); err != nil {
				t.Errorf("the command does not go on: %v", err)
			}
			if held := client.Exists(t.Context(), "lock:k").Val() == 1; held != c.signal {
				t.Errorf("the lock is held: %v", held)
			}
			goesOn.Close()
			if code, _ := p.exit(); code != c.code {
				t.Errorf("%d, want %d", code, c.code)
			}
		})
	}
}

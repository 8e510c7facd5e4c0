package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// openTerminal opens a terminal, and the side of it on which one types.
func openTerminal(t *testing.T) (typed, terminal *os.File) {
	t.Helper()
	typed, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { typed.Close() })
	var number, unlocked int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, typed.Fd(), request, uintptr(unsafe.Pointer(value))); failed != 0 {
			t.Skip(failed)
		}
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return typed, terminal
}

// A command asks on the terminal also where its input is a pipe, as ssh and sudo do.
func TestACommandReadsFromTheTerminal(t *testing.T) {
	typed, terminal := openTerminal(t)
	server := redistest.Start(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "run", "k", "--", "sh", "-c", "echo ready; read line < /dev/tty; read input; echo $line, $input")
	cmd.Env = append(os.Environ(), "TEST_AS_LATCHKEY=1", "LATCHKEY_REDIS="+server.Addr())
	cmd.Stdin = strings.NewReader("piped\n")
	cmd.ExtraFiles = []*os.File{terminal}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	p := start(t, cmd)
	p.next()
	if _, err := typed.WriteString("typed\n"); err != nil {
		t.Fatal(err)
	}
	if code, out := p.exit(); code != 0 || out != "typed, piped\n" {
		t.Errorf("%d, %q, %s", code, out, p.said.String())
	}
	if err := syscall.Kill(-cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("left behind: %v", err)
	}
}

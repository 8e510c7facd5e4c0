//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// leaveTerminal starts a command as cron does.
func leaveTerminal(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// patient is a command that starts another one, and ends with 9 a while after SIGTERM.
const patient = `trap 'echo "got it"; exit 9' TERM; sh -c 'echo ready $$; exec sleep 1000' & while :; do wait; done`

func TestSignalsReachTheCommandAndWhatItStarted(t *testing.T) {
	server := redistest.Start(t)
	p := launch(t, server.Addr(), "run", "k", "--", "sh", "-c", patient)
	child := pidIn(t, p.next())
	p.signal(syscall.SIGTERM)
	if code, out := p.exit(); code != 9 || strings.TrimSpace(out) != "got it" {
		t.Errorf("%d, %q, %s", code, out, p.said.String())
	}
	awaitDeath(t, child)
	if n := server.Client(t).Exists(t.Context(), "lock:k").Val(); n != 0 {
		t.Error("the lock is still there")
	}
}

// nohup, and a script in its background, start what is to ignore a signal.
func TestASignalThatIsIgnoredStaysSo(t *testing.T) {
	server := redistest.Start(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		cmd := exec.Command("sh", "-c", fmt.Sprintf(`trap '' %d; exec "$0" run k -- sh -c 'echo ready; read line; echo "$line"'`, s), binary)
		cmd.Env = append(os.Environ(), "TEST_AS_LATCHKEY=1", "LATCHKEY_REDIS="+server.Addr())
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); line != "ready\n" {
			t.Fatal(line, err)
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte("done\n")); err != nil {
			t.Fatal(err)
		}
		if line, _ := lines.ReadString('\n'); line != "done\n" {
			t.Errorf("%v: %q", s, line)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}

// A command that reads from a terminal which is not its input is stopped, too.
func TestASignalEndsACommandThatIsStopped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows that a process is stopped")
	}
	server := redistest.Start(t)
	said, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd := command(t, server.Addr(), "run", "k", "--", "sh", "-c", "echo ready $$; kill -STOP $$; exec sleep 1000")
	cmd.Stderr = said
	p := start(t, cmd)
	stopped := pidIn(t, p.next())
	redistest.Await(t, patience, "the command to be stopped", func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stopped))
		return strings.Contains(string(stat), ") T ")
	})
	redistest.Await(t, patience, "that it is said", func() bool {
		text, err := os.ReadFile(said.Name())
		return err == nil && strings.Contains(string(text), fmt.Sprintf("process %d, the command, is STOPPED", stopped))
	})
	p.signal(syscall.SIGTERM)
	if code, _ := p.exit(); code != 128+15 {
		t.Error(code)
	}
}

// Whoever types Ctrl-Z where the input is no terminal reaches latchkey alone.
func TestItIsNotStoppedWhileTheCommandRuns(t *testing.T) {
	server := redistest.Start(t)
	p := launch(t, server.Addr(), "run", "k", "--", "sh", "-c", "echo ready; exec sleep 1000")
	p.next()
	p.signal(syscall.SIGTSTP)
	p.signal(syscall.SIGTERM)
	if code, _ := p.exit(); code != 128+15 {
		t.Errorf("%d, %s", code, p.said.String())
	}
}

func TestASignalEndsTheWait(t *testing.T) {
	server := redistest.Start(t)
	holder := launch(t, server.Addr(), "run", "k", "--", "sh", "-c", "echo ready; exec sleep 1000")
	holder.next()
	p := launch(t, server.Addr(), "run", "k", "--", "echo", "two at once")
	redistest.Await(t, patience, "it waits", func() bool {
		return len(server.Client(t).PubSubChannels(t.Context(), "redisson_lock__channel:{lock:k}*").Val()) > 0
	})
	p.signal(syscall.SIGUSR1) // is for the command
	p.signal(syscall.SIGTERM)
	if code, out := p.exit(); code != 128+15 || out != "" {
		t.Errorf("%d, %q, %s", code, out, p.said.String())
	}
}

func TestTheCommandEndsWithTheLock(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	for name, c := range map[string]struct{ command, out, killsAfter string }{
		"that obeys":        {patient, "got it", "1m"},
		"that has no time":  {`trap '' TERM; sh -c 'echo ready $$; exec sleep 1000' & while :; do wait; done`, "", "500ms"},
		"that leaves first": {`trap '' TERM; sh -c 'echo ready $$; exec sleep 1000' & trap - TERM; while :; do wait; done`, "", "500ms"},
		"that is stopped":   {strings.Replace(patient, "while", "kill -STOP $$; while", 1), "got it", "1m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(killsAfter, c.killsAfter)
			p := launch(t, server.Addr(), "run", "-lease", "3s", "k", "--", "sh", "-c", c.command)
			child := pidIn(t, p.next())
			if err := client.Del(t.Context(), "lock:k").Err(); err != nil {
				t.Fatal(err)
			}
			if code, out := p.exit(); code != 75 || strings.TrimSpace(out) != c.out || !strings.Contains(p.said.String(), "lost while the command ran") {
				t.Errorf("%d, %q, %s", code, out, p.said.String())
			}
			awaitDeath(t, child)
		})
	}
}

// The lock lasts for as long as anything that the command has started, as with flock.
func TestTheLockOutlivesTheCommand(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("go", 0o600); err != nil {
		t.Fatal(err)
	}
	const leaves = `sh -c 'echo ready; read line < go; echo done' & exit 3`
	p := launch(t, server.Addr(), "run", "k", "--", "sh", "-c", leaves)
	p.next()
	other := launch(t, server.Addr(), "run", "-wait", "1s", "k", "--", "echo", "two at once")
	if code, out := other.exit(); code != 1 || out != "" {
		t.Errorf("%d, %q", code, out)
	}
	letGo(t)
	if code, out := p.exit(); code != 3 || out != "done\n" || !strings.Contains(p.said.String(), "GOES ON: the lock stays held") {
		t.Errorf("%d, %q, %s", code, out, p.said.String())
	}
	p = launch(t, server.Addr(), "run", "k", "--", "sh", "-c", leaves)
	p.next()
	p.signal(syscall.SIGTERM)
	if code, _ := p.exit(); code != 3 && code != 128+15 {
		t.Errorf("%d, %s", code, p.said.String())
	}
	t.Setenv(killsAfter, "500ms")
	p = launch(t, server.Addr(), "run", "-lease", "3s", "k", "--", "sh", "-c", `sh -c 'trap "" TERM; echo ready $$; read line < go' & exit 0`)
	child := pidIn(t, p.next())
	if err := client.Del(t.Context(), "lock:k").Err(); err != nil {
		t.Fatal(err)
	}
	if code, _ := p.exit(); code != 75 {
		t.Errorf("%d, %s", code, p.said.String())
	}
	awaitDeath(t, child)
}

// Nobody renews the lock of a latchkey that was killed: its command must not outlive it.
func TestTheCommandDiesWithLatchkey(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent has died")
	}
	server := redistest.Start(t)
	p := launch(t, server.Addr(), "run", "k", "--", "sh", "-c", "echo ready $$; exec sleep 1000")
	command := pidIn(t, p.next())
	p.signal(syscall.SIGKILL)
	awaitDeath(t, command)
	p.exit()
}

// Three machines run the same cron job. Each of its times it runs once, though one machine
// is killed while it works, and Redis is restarted.
func TestLikeCronOnThreeMachines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent has died")
	}
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("go", 0o600); err != nil {
		t.Fatal(err)
	}
	// working is the machine whose command waits to be told to go on.
	working := func(machines []*process) (i int) {
		t.Helper()
		redistest.Await(t, patience, "a machine works", func() bool {
			text, _ := os.ReadFile("ready")
			i = slices.IndexFunc(machines, func(p *process) bool { return strconv.Itoa(p.cmd.Process.Pid)+"\n" == string(text) })
			return i >= 0
		})
		if err := os.Remove("ready"); err != nil {
			t.Fatal(err)
		}
		return i
	}
	const ticks, killed, restarted = 6, 2, 4
	var want string
	for tick := range ticks {
		key := fmt.Sprint("report:", tick)
		want += key + "\n"
		command, wait := `echo $LATCHKEY_KEY >> log`, "0"
		if tick == killed {
			wait = "1h"
		}
		if tick == killed || tick == restarted {
			command = "echo $PPID > new; mv new ready; read line < go; " + command
		}
		var machines []*process
		for range 3 {
			machines = append(machines, launch(t, server.Addr(),
				"run", "-wait", wait, "-lease", "1h", "-keep", "1h", "-E", "0", key, "--", "sh", "-c", command))
		}
		exit := func(p *process) {
			t.Helper()
			if code, _ := p.exit(); code != 0 {
				t.Errorf("%s: %d, %s", key, code, p.said.String())
			}
		}
		switch tick {
		case killed:
			i := working(machines)
			redistest.Await(t, patience, "the others wait, and take signals", func() bool {
				_, said := ask(t, server.Addr(), "", "ls", "-json", "-waiting", key)
				return strings.Count(said, "waited_ms") == 2
			})
			machines[i].signal(syscall.SIGKILL)
			machines[i].exit()
			machines = slices.Delete(machines, i, i+1)
			exit(launch(t, server.Addr(), "unlock", "-y", key)) // or the lease has to end
			i = working(machines)
			letGo(t)
			exit(machines[i])
			// The window does not end for an hour.
			machines[1-i].signal(syscall.SIGTERM)
			if code, out := machines[1-i].exit(); code != 128+15 || out != "" {
				t.Errorf("%s: %d, %q, %s", key, code, out, machines[1-i].said.String())
			}
		case restarted:
			i := working(machines)
			for other, p := range machines {
				if other != i {
					exit(p)
				}
			}
			server.Kill(t)
			server.Restart(t)
			letGo(t)
			exit(machines[i])
			again := launch(t, server.Addr(), "run", "-wait", "0", key, "--", "echo", "twice")
			if code, out := again.exit(); code != 1 || out != "" {
				t.Errorf("%s: %d, %q, %s", key, code, out, again.said.String())
			}
		default:
			for _, p := range machines {
				exit(p)
			}
		}
	}
	if log, err := os.ReadFile("log"); err != nil || string(log) != want {
		t.Errorf("%q, %v; want %q", log, err, want)
	}
}

// letGo lets the command go on that works.
func letGo(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("go", []byte("on\n"), 0); err != nil {
		t.Fatal(err)
	}
}

func pidIn(t *testing.T, line string) int {
	t.Helper()
	_, number, _ := strings.Cut(line, " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(line, err)
	}
	return pid
}

// awaitDeath waits until a process is gone, or waits to be buried.
func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	redistest.Await(t, patience, "the end of what the command started", func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
}

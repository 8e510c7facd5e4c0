package redistest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestServerDiesWithTheTestBinary kills a process that has started a server, and
// looks for the server.
func TestServerDiesWithTheTestBinary(t *testing.T) {
	const child = "REDISTEST_CHILD"
	if os.Getenv(child) != "" {
		s, err := Launch(os.Getenv(child))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("server %d\n", s.process.cmd.Process.Pid)
		select {} // until it is killed
	}
	Start(t) // skips where there is no redis-server
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "server ")))
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if !alive(pid) {
		t.Fatal("the server does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	Await(t, patience, "the server to die", func() bool { return !alive(pid) })
}

// alive says whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

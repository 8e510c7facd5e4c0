//go:build unix

package main

import (
	"errors"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/start"
)

var onPostgres = flag.Bool("payments.postgres", false, "runs the tests that need PostgreSQL, which must be installed")

// startPostgres starts a PostgreSQL in a folder of its own, and returns the folder of its socket and the URL of a database.
func startPostgres(t *testing.T) (folder, database string) {
	t.Helper()
	if !*onPostgres {
		t.Skip("needs PostgreSQL: make test-postgres")
	}
	folder, err := os.MkdirTemp("", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	attributes := notAsRoot(t, folder)
	data := filepath.Join(folder, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(find(t, name), args...)
		cmd.Dir, cmd.SysProcAttr = folder, attributes
		return cmd
	}
	if out, err := command("initdb", "-D", data, "-U", "shop", "-A", "trust", "-N", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := command("postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off")
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("PostgreSQL's log: %v\n%s", err, text)
		}
		_ = log.Close()
	})
	database = databaseAt(folder)
	await(t, "PostgreSQL answers", func() bool {
		db, err := open(t.Context(), database, new(steps))
		return err == nil && db.Close() == nil
	})
	return folder, database
}

func databaseAt(folder string) string {
	return "postgres:///postgres?" + url.Values{"host": {folder}, "user": {"shop"}, "sslmode": {"disable"}}.Encode()
}

// find returns the path of a program of PostgreSQL: Debian and Homebrew have them beside the usual folders.
func find(t *testing.T, name string) string {
	t.Helper()
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	for _, folder := range []string{"/usr/lib*/postgresql/*", "/opt/homebrew/opt/postgresql@*", "/usr/local/opt/postgresql@*"} {
		if found, err := filepath.Glob(filepath.Join(folder, "bin", name)); err == nil && len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Fatalf("there is no %s", name)
	panic("unreachable")
}

// notAsRoot has PostgreSQL, which refuses to run as root, run as another user, to whom the folder is given.
func notAsRoot(t *testing.T, folder string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	other, err := user.Lookup("postgres")
	if err != nil {
		other, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.Atoi(other.Uid)
	gid, err2 := strconv.Atoi(other.Gid)
	if err := errors.Join(err1, err2, os.Chown(folder, uid, gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !condition(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("not within a minute: ", what)
		}
	}
}

func TestRunOnPostgres(t *testing.T) {
	_, database := startPostgres(t)
	addr, stop, err := start.Redis(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := rehearse(t.Context(), rehearsal{redis: addr, database: database}); err != nil {
		t.Fatal(err)
	}
}

package core_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

func TestAnOwnerTellsItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		time.Sleep(90 * time.Minute)
		l := s.locker(core.Describe("shop.web-3_B"))
		began := time.Now()
		time.Sleep(time.Minute)
		k := take(t, background, l, "k")
		info, err := l.Inspect(background, "k")
		if err != nil {
			t.Fatal(err)
		}
		want := core.Process{Name: "shop.web-3_B", PID: os.Getpid(), Since: began}
		if !strings.HasPrefix(info.Owner, "shop.web-3_B@") {
			t.Errorf("Redis has the owner %q", info.Owner)
		}
		for what, got := range map[string]core.Process{"owner": processOf(t, info.Owner), "snapshot": l.Snapshot().Process, "invalid key": l.Snapshot("").Process} {
			if got.Name != want.Name || got.PID != want.PID || !got.Since.Equal(want.Since) {
				t.Errorf("%s: %+v, want %+v", what, got, want)
			}
		}
		unlock(t, k)
	})
}

func processOf(t *testing.T, owner string) core.Process {
	t.Helper()
	p, ok := core.ProcessOf(owner)
	if !ok {
		t.Errorf("ProcessOf(%q) knows nothing", owner)
	}
	return p
}

// Two that are alike in all they say must not be one owner.
func TestAlikeProcessesAreNotOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(core.Describe("x")), s.locker(core.Describe("x"))
		k := take(t, background, a, "k")
		if _, err := b.TryLock(background, "k"); err == nil {
			t.Fatal("a second holder")
		}
		unlock(t, k)
	})
}

func TestOtherOwnersTellNoProcess(t *testing.T) {
	for _, owner := range []string{
		"", "import-7", "a@b", "a@b:1", "ec189370-1111-4222-8333-444455556666:1", "shop@AAAAAAAAAAAAAAAAAAAA",
		"@AAAAAAAAAAAAAAAAAAAA:1", "a b@AAAAAAAAAAAAAAAAAAAA:1", "shop@AAAAAAAAAAAAAAAAAAAAAAAA:1", "shop@AAAAAAAAAAAAAAAA:1",
		"x shop@AAAAAAAAAAAAAAAAAAAA:1", "sixteen-letters1@AAAAAAAAAAAAAAAAAAAA:1",
	} {
		if p, ok := core.ProcessOf(owner); ok {
			t.Errorf("ProcessOf(%q) is %+v", owner, p)
		}
	}
	processOf(t, "shop@AAAAAAAAAAAAAAAAAAAA:1")
	processOf(t, "asynq:task-7:shop@AAAAAAAAAAAAAAAAAAAA:1")
}

func TestDescribeRefusesWhatDoesNotFit(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	for _, name := range []string{"", "a b", "a:b", "a@b", "ü", "sixteen-letters1"} {
		if _, err := core.New(client, core.Describe(name)); err == nil || !strings.Contains(err.Error(), "core: Describe(") || !strings.Contains(err.Error(), "1 to 15") {
			t.Errorf("Describe(%q): %v", name, err)
		}
	}
	if err := adapter.Validate(core.Describe("x")); err == nil || !strings.Contains(err.Error(), "option of New") {
		t.Errorf("for a call: %v", err)
	}
}

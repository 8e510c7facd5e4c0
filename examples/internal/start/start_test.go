package start

import (
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// As in Redis: a key that expired in the middle of a script would be made anew by its next command, and never expire.
func TestNoKeyExpiresWithinAScript(t *testing.T) {
	addr, stop, err := Redis(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: -1})
	defer client.Close()
	const script = `
		redis.call('SET', KEYS[1], 'v', 'PX', 1)
		for i = 1, 500 do redis.call('EXISTS', KEYS[1]) end -- for longer than that
		return redis.call('EXISTS', KEYS[1])`
	there, err := client.Eval(t.Context(), script, []string{"k"}).Int()
	if err != nil || there != 1 {
		t.Errorf("at the end of the script: %d, %v", there, err)
	}
	for there := int64(1); there == 1 && err == nil; { // until the test has no more time
		there, err = client.Exists(t.Context(), "k").Result()
	}
	if err != nil {
		t.Error(err)
	}
}

func TestWithoutRedisItSaysWhatToDo(t *testing.T) {
	_, _, err := Redis(t.Context(), "127.0.0.1:1")
	if err == nil || !strings.HasPrefix(err.Error(), "no Redis at 127.0.0.1:1: ") || !strings.Contains(err.Error(), "leave out -redis") {
		t.Error(err)
	}
}

func TestBadAddressesAreExplained(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for addr, want := range map[string]string{
		busy.Addr().String(): "take another port",
		"8080":               "such as -serve :8080",
	} {
		_, _, err := Listen(addr)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-serve %s: %v, want %q", addr, err, want)
		}
	}
}

func TestURLIsOneToClickOn(t *testing.T) {
	for addr, want := range map[string]string{
		":8080":          "http://localhost:8080",
		"0.0.0.0:8080":   "http://localhost:8080",
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		"[::]:8080":      "http://localhost:8080",
		"[::1]:8080":     "http://[::1]:8080",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := URL(tcp); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

package start

import (
	"net"
	"strings"
	"testing"
)

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

package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Who knows the user and the key of a request finds its lock, of which Redis has a digest only.
func TestShowFindsTheLockOfARequest(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	pay := httplock.Idempotent(keyfunc.Value("userID"), httplock.Locker(locker(t, client)))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for sent, key := range map[string]string{"k": "k", `a:b=c\d`: `a:b=c\d`, `"q\\r\"s"`: `"q\\r\"s"`, "plain": `"plain"`, `"draft"`: "draft"} {
		r := httptest.NewRequest("POST", "/payments", nil)
		r.Header.Set("Idempotency-Key", sent)
		//lint:ignore SA1029 such are the keys of other frameworks' values
		pay.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), "userID", "u7")))
		exit, said := ask(t, server.Addr(), "", "show", "-idempotent", "value.userID=u7", key)
		if exit != 0 || !strings.Contains(said, "answered") || !strings.Contains(said, "idempotent:") {
			t.Errorf("%s: %d %s", key, exit, said)
		}
		if _, said := ask(t, server.Addr(), "", "show", "-idempotent", "value.userID=u8", key); !strings.Contains(said, "free") || !strings.Contains(said, "written as value.userID=42,") {
			t.Errorf("of another user: %s", said)
		}
		if _, said := ask(t, server.Addr(), "", "ls"); !strings.Contains(said, "answers left out: 1;") {
			t.Errorf("ls reads the answer: %s", said)
		}
		name := regexp.MustCompile("idempotent:[0-9a-f]{64}").FindString(said)
		if exit, said := ask(t, server.Addr(), "", "unlock", "-y", name); exit != 0 {
			t.Errorf("unlock %s: %d %s", name, exit, said)
		}
	}
	if exit, said := ask(t, server.Addr(), "", "show", "-idempotent", "value.userID=u7", "a b"); exit != exitUsage {
		t.Errorf("what is no Idempotency-Key: %d %s", exit, said)
	}
}

// An answer that could not be stored is told apart from one that was, in the log and by show.
func TestShowTellsOfAnAnswerThatIsNotThere(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	var log strings.Builder
	l := locker(t, client, core.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	pay := httplock.Idempotent(keyfunc.Value("userID"), httplock.Locker(l))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, r.ContentLength))
	}))
	for key, c := range map[string]struct {
		bytes int
		want  bool
	}{"small": {10, false}, "large": {64<<10 + 1, true}} {
		log.Reset()
		r := httptest.NewRequest("POST", "/payments", bytes.NewReader(make([]byte, c.bytes)))
		r.Header.Set("Idempotency-Key", key)
		//lint:ignore SA1029 such are the keys of other frameworks' values
		pay.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), "userID", "u7")))
		_, said := ask(t, server.Addr(), "", "show", "-idempotent", "value.userID=u7", key)
		if strings.Contains(said, "could not be stored") != c.want || !strings.Contains(said, "answered") {
			t.Errorf("%s: %s", key, said)
		}
		if strings.Contains(log.String(), "longer than MaxBytes") != c.want {
			t.Errorf("%s: %s", key, log.String())
		}
	}
}

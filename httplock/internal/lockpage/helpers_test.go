//go:build go1.25

package lockpage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/internal/buffered"
)

func get(h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	return send(h, "GET", target, header...)
}

func send(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// follow goes where a POST leads, as a browser does, under the address of the page.
func follow(h http.Handler, at string, w *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	var cookies []string
	for _, c := range w.Result().Cookies() {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	return get(h, at+w.Header().Get("Location"), "Cookie", strings.Join(cookies, "; "))
}

// lockReport is the JSON of the lock page.
type lockReport struct {
	Host    string
	PID     int
	Name    string
	Since   time.Time
	Time    time.Time
	Outcome string
	LookUp  *lookedUp `json:"lookup"`
	Held    struct {
		Total, Matching int
		Locks           []heldLock
	}
	Waiting struct {
		Total, Matching int
		Locks           []waitingLock
	}
}

type heldLock struct {
	Key, Owner, Form         string
	Token                    int64
	Since                    time.Time
	TTL                      int64 `json:"ttl_ms"`
	Count, Renewals, Waiters int
	Fixed, Overdue           bool
	Escaped                  string
}

type waitingLock struct {
	Key     string
	Since   time.Time
	Waiters int
	Escaped string
}

type lookedUp struct {
	Key, State, Form string
	Escaped          string
	holder
	Holders []holder
	Waiters int
	Queue   []queued `json:"waiting"`
	Error   string
	Meant   string `json:"did_you_mean"`
}

type holder struct {
	Owner   string
	Process *process
	Count   int
	Weight  int       `json:"permits"`
	TTL     int64     `json:"ttl_ms"`
	HeldFor int64     `json:"held_ms"`
	Renewed int64     `json:"renewed_ms"`
	Here    *heldLock `json:"held_here"`
}

type queued struct {
	Process *process
	Owner   string
	Form    string
	Waited  int64 `json:"waited_ms"`
	Polls   bool
}

type process struct {
	Name  string
	PID   int
	Since time.Time
}

// ownerText is what the page says of the owner of a lock, which a process of that name has
// taken as soon as it was there.
func ownerText(process string, k *core.Lock) string {
	since := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) // when a fake clock begins
	return fmt.Sprintf("process %d of “%s”, up for %.1f s %s", os.Getpid(), process, since.Seconds(), k.Owner())
}

// readReport fails the test unless the answer is a report with that status.
func readReport(t *testing.T, w *httptest.ResponseRecorder, status int) lockReport {
	t.Helper()
	var r lockReport
	decoder := json.NewDecoder(w.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil || w.Code != status || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s, %v; want %d", w.Code, w.Header(), err, status)
	}
	return r
}

func take(t *testing.T, ctx context.Context, l *core.Locker, key string, opts ...core.Option) *core.Lock {
	t.Helper()
	k, err := l.Lock(ctx, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func unlock(t *testing.T, locks ...*core.Lock) {
	t.Helper()
	for _, k := range locks {
		if err := k.Unlock(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// wait calls Lock in another goroutine, and unlocks at once. It returns when the
// call waits.
func wait(t *testing.T, l *core.Locker, key string) {
	go func() {
		if k, err := l.Lock(t.Context(), key); err == nil {
			unlock(t, k)
		}
	}()
	synctest.Wait()
}

// pair returns two Lockers on one Redis, which fails when it is told to.
func pair(t *testing.T) (*core.Locker, *core.Locker, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	t.Cleanup(server.Close)
	var lockers [2]*core.Locker
	for i := range lockers {
		client := redis.NewClient(&redis.Options{Addr: "10.9.8.7:6379", Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := server.Dial()
			return buffered.New(conn), err
		}})
		l, err := core.New(client, core.Logger(slog.New(slog.DiscardHandler)), core.Describe([]string{"this", "other"}[i]))
		if err != nil {
			t.Fatal(err)
		}
		lockers[i] = l
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := errors.Join(l.Close(ctx), client.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	return lockers[0], lockers[1], server
}

// pageTest runs a test of a page whose Redis both Lockers are on, by a fake clock.
func pageTest(t *testing.T, test func(t *testing.T, l, other *core.Locker, page http.Handler, server *miniredis.Miniredis)) {
	synctest.Test(t, func(t *testing.T) {
		l, other, server := pair(t)
		test(t, l, other, httplock.LockPage(l, httplock.AllowForceUnlock()), server)
	})
}

// logged returns what is logged while f runs, in a bubble.
func logged(f func()) string {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	f()
	synctest.Wait() // a Locker's lines are written by a goroutine of their own
	return log.String()
}

var tag = regexp.MustCompile(`(?s)<style>.*</style>|<[^>]*>`)

// readable is the text of a page, without the words that make it up.
func readable(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(page, " "))), " ")
}

package lockpage_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestLockPageFiltersAndSorts(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		locks := []*core.Lock{take(t, t.Context(), other, "order:9"), take(t, t.Context(), other, "cart:8")}
		for _, key := range []string{"order:3", "cart:1", "order:1", "cart:2"} {
			time.Sleep(time.Second)
			locks = append(locks, take(t, t.Context(), l, key))
		}
		for _, key := range []string{"order:9", "cart:8", "cart:8", "order:1", "cart:2", "cart:2"} {
			time.Sleep(time.Millisecond)
			wait(t, l, key)
		}
		cart1 := locks[3].Owner()
		for target, want := range map[string]string{
			"/?":                        "cart:1 cart:2 order:1 order:3 of 4 of 4; cart:2 cart:8 order:1 order:9 of 4 of 4",
			"/?sort=nonsense":           "cart:1 cart:2 order:1 order:3 of 4 of 4; cart:2 cart:8 order:1 order:9 of 4 of 4",
			"/?sort=age":                "order:3 cart:1 order:1 cart:2 of 4 of 4; order:9 cart:8 order:1 cart:2 of 4 of 4",
			"/?sort=waiters":            "cart:2 order:1 cart:1 order:3 of 4 of 4; cart:2 cart:8 order:1 order:9 of 4 of 4",
			"/?filter=ORDER":            "order:1 order:3 of 2 of 4; order:1 order:9 of 2 of 4",
			"/?filter=order&sort=age":   "order:3 order:1 of 2 of 4; order:9 order:1 of 2 of 4",
			"/?filter=" + cart1:         "cart:1 of 1 of 4; of 0 of 4",
			"/?filter=nothing&sort=age": "of 0 of 4; of 0 of 4",
		} {
			r := readReport(t, get(page, target+"&format=json"), 200)
			var got strings.Builder
			for _, h := range r.Held.Locks {
				got.WriteString(h.Key + " ")
			}
			fmt.Fprintf(&got, "of %d of %d; ", r.Held.Matching, r.Held.Total)
			for _, w := range r.Waiting.Locks {
				got.WriteString(w.Key + " ")
			}
			fmt.Fprintf(&got, "of %d of %d", r.Waiting.Matching, r.Waiting.Total)
			if got.String() != want {
				t.Errorf("%s: %s\nwant %s", target, got.String(), want)
			}
		}
		text := readable(get(page, "/?filter=order").Body.String())
		if !strings.Contains(text, "Held by this process 2 of 4") || !strings.Contains(text, "Waited for by this process 2 of 4") {
			t.Error(text)
		}
		text = readable(get(page, "/?filter=nothing").Body.String())
		if !strings.Contains(text, "No lock that is held fits the filter.") || !strings.Contains(text, "No lock that is waited for fits the filter.") {
			t.Error(text)
		}
		unlock(t, locks...)
	})
}

// A text is by chance in many digests, and in the random letters of owners.
func TestLockPageFiltersByWhatPeopleRead(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		a, b := take(t, t.Context(), l, "idempotent:"+strings.Repeat("42ab", 16)), take(t, t.Context(), l, "42", core.Owner("import-42@x"))
		task := take(t, t.Context(), l, "task", adapter.OwnerBegin("asynq:"+strings.Repeat("42ab", 8)+":"))
		process, _, _ := strings.Cut(a.Owner(), "@")
		for filter, want := range map[string]int{
			"42": 1, "IMPORT": 1, "@": 1, "42ab": 0, "idem": 1, a.Owner(): 1, process + "@": 2, task.Owner(): 1, "asynq:42": 1,
		} {
			if r := readReport(t, get(page, "/?format=json&filter="+filter), 200); len(r.Held.Locks) != want {
				t.Errorf("%q: %+v; want %d", filter, r.Held.Locks, want)
			}
		}
		unlock(t, a, b, task)
	})
}

// Locks for which as many calls wait are in the order of their keys.
func TestLockPageSortsTwice(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		var locks []*core.Lock
		for i := range 40 {
			key := strconv.Itoa(i * 7 % 40)
			locks = append(locks, take(t, t.Context(), l, key))
			for range i % 3 {
				wait(t, l, key)
			}
		}
		r := readReport(t, get(page, "/?format=json&sort=waiters"), 200)
		if !slices.IsSortedFunc(r.Held.Locks, func(a, b heldLock) int {
			return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), strings.Compare(a.Key, b.Key))
		}) {
			t.Errorf("%+v", r.Held.Locks)
		}
		unlock(t, locks...)
	})
}

func TestLockPageShowsAThousand(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l, err := core.New(client)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1001 {
		k := take(t, t.Context(), l, fmt.Sprintf("order:%04d", i))
		defer unlock(t, k)
	}
	page := httplock.LockPage(l)
	r := readReport(t, get(page, "/?format=json"), 200)
	if r.Held.Total != 1001 || r.Held.Matching != 1001 || len(r.Held.Locks) != 1000 || r.Held.Locks[999].Key != "order:0999" {
		t.Errorf("%d, %d, %d", r.Held.Total, r.Held.Matching, len(r.Held.Locks))
	}
	body := get(page, "/").Body.String()
	if n := strings.Count(body, `class="key"`); n != 1000 || !strings.Contains(readable(body), "The first 1,000 of 1,001 are shown.") {
		t.Errorf("%d are shown", n)
	}
	body = get(page, "/?filter=order:1").Body.String()
	if !strings.Contains(readable(body), "1 of 1,001") || strings.Contains(body, "are shown") {
		t.Error("the filter does not reach the last")
	}
}

// A renewal is due every 10 s.
func TestLockPageTellsOfAHolderThatStopped(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, server *miniredis.Miniredis) {
		alone := take(t, t.Context(), other, "alone")
		first := take(t, t.Context(), other, "together", core.Shared())
		second := take(t, t.Context(), l, "together", core.Shared())
		text := func(key string) string { return readable(get(page, "/?key="+key).Body.String()) }
		server.SetError("ERR stopped")
		time.Sleep(16*time.Second + 100*time.Millisecond) // between two tries to renew
		server.SetError("")
		for _, key := range []string{"alone", "together"} {
			if !strings.Contains(text(key), ": it does not renew") {
				t.Errorf("nobody renews, and the page does not say so: %s", text(key))
			}
		}
		time.Sleep(5 * time.Second)
		for _, key := range []string{"alone", "together"} {
			if strings.Contains(text(key), "does not renew") {
				t.Errorf("a lock that was renewed again: %s", text(key))
			}
		}
		unlock(t, alone, first, second)
	})
}

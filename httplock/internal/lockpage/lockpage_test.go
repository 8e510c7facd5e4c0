//go:build go1.25

package lockpage_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestLockPageShowsWhatIsHeldAndWaitedFor(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		theirs := take(t, t.Context(), other, "theirs")
		a := take(t, t.Context(), l, "a")
		inner := take(t, a.Context(), l, "a")
		b := take(t, t.Context(), l, "b", core.FixedLease(time.Hour), core.Owner("import-7"))
		long := take(t, t.Context(), l, "long", core.Lease(time.Hour), core.MaxHold(time.Second))
		at := time.Now().UTC()
		wait(t, l, "theirs")
		time.Sleep(2 * time.Second)
		wait(t, l, "a")
		wait(t, l, "theirs")
		time.Sleep(10 * time.Second)
		synctest.Wait()

		r := readReport(t, get(page, "/debug/locks?format=json"), 200)
		if host, _ := os.Hostname(); r.Host != host || r.PID != os.Getpid() || r.Name != "this" || !r.Since.Equal(at) || !r.Time.Equal(time.Now()) || r.LookUp != nil || r.Outcome != "" {
			t.Errorf("%+v", r)
		}
		held := []heldLock{
			{Key: "a", Owner: a.Owner(), Form: "exclusive", Token: a.Token(), Since: at, TTL: 27990, Count: 2, Renewals: 1, Waiters: 1},
			{Key: "b", Owner: b.Owner(), Form: "exclusive", Token: b.Token(), Since: at, TTL: 3587990, Count: 1, Fixed: true},
			{Key: "long", Owner: long.Owner(), Form: "exclusive", Token: long.Token(), Since: at, TTL: 3587990, Count: 1, Overdue: true},
		}
		if !reflect.DeepEqual(r.Held.Locks, held) || r.Held.Total != 3 || r.Held.Matching != 3 {
			t.Errorf("held: %+v, want %+v", r.Held, held)
		}
		waiting := []waitingLock{{"a", at.Add(2 * time.Second), 1, ""}, {"theirs", at, 2, ""}}
		if !reflect.DeepEqual(r.Waiting.Locks, waiting) || r.Waiting.Total != 2 || r.Waiting.Matching != 2 {
			t.Errorf("waited for: %+v, want %+v", r.Waiting, waiting)
		}

		text := readable(get(page, "/debug/locks").Body.String())
		for _, want := range []string{
			"Held by this process 3",
			"a 2 holds 12 s 27 s 1 1 ",
			"b fixed lease as import-7 12 s 59 min 47 s 0 0 ",
			"long over MaxHold 12 s 59 min 47 s 0 0 ",
			"Waited for by this process 2",
			"Key Longest wait Calls waiting a 10 s 1 theirs 12 s 2 ",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q:\n%s", want, text)
			}
		}
		unlock(t, inner, a, b, long, theirs)
	})
}

func TestLockPageLooksUp(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, server *miniredis.Miniredis) {
		mine, theirs := take(t, t.Context(), l, "mine"), take(t, t.Context(), other, "theirs")
		done := take(t, t.Context(), l, "done", core.KeepFor(time.Minute))
		unlock(t, done)
		server.HSet("lock:java", "client:1", "3")
		at := time.Now().UTC()
		wait(t, l, "theirs")
		time.Sleep(5 * time.Second)
		for key, c := range map[string]struct {
			want lookedUp
			text string
		}{
			// The prefix is there already. Free it is said to be in no reassuring colour.
			"lock:mine": {lookedUp{Key: "lock:mine", State: "free", Meant: "mine"},
				"lock:mine free The key begins with the prefix, which Redis then has twice. Did you mean mine ? Nobody holds it."},
			"lock:":    {lookedUp{Key: "lock:", State: "free"}, "lock: free Nobody holds it."},
			"nobody's": {lookedUp{Key: "nobody's", State: "free"}, "nobody's free Nobody holds it."},
			"mine": {lookedUp{
				Key: "mine", State: "held", Form: "exclusive", holder: holder{
					Owner: mine.Owner(), Process: &process{"this", os.Getpid(), at}, Count: 1, TTL: 25000, HeldFor: 5000, Renewed: 5000,
					Here: &heldLock{Key: "mine", Owner: mine.Owner(), Form: "exclusive", Token: mine.Token(), Since: at, TTL: 24990, Count: 1},
				},
			}, "mine held by this process Owner " + ownerText("this", mine) + " Holds 1 Left in Redis unless renewed 25 s Calls waiting here 0 " +
				"Held for 5.0 s Renewals 0 Fencing token " + fmt.Sprint(mine.Token())},
			"theirs": {lookedUp{Key: "theirs", State: "held", Form: "exclusive", holder: holder{
				Owner: theirs.Owner(), Process: &process{"other", os.Getpid(), at}, Count: 1, TTL: 25000, HeldFor: 5000, Renewed: 5000,
			}, Waiters: 1, Queue: []queued{{Process: &process{"this", os.Getpid(), at}, Form: "exclusive", Waited: 5000}}},
				"theirs held Owner " + ownerText("other", theirs) +
					" Holds 1 Held for 5.0 s Renewed 5.0 s ago Left in Redis unless renewed 25 s Calls waiting here 1 Free"},
			"java": {lookedUp{Key: "java", State: "held", Form: "exclusive", holder: holder{Owner: "client:1", Count: 3, TTL: -1}}, "Holds 3 Left in Redis unless renewed no end Calls"},
			"done": {lookedUp{Key: "done", State: "dedup_window", holder: holder{TTL: 55000}}, "done dedup window Left of the window 55 s"},
			"":     {lookedUp{State: "unknown", Error: "A key has 1 to 1,024 bytes."}, "unknown A key has 1 to 1,024 bytes."},
			strings.Repeat("x", 1025): {lookedUp{Key: strings.Repeat("x", 1025), State: "unknown", Error: "A key has 1 to 1,024 bytes."},
				"unknown A key has 1 to 1,024 bytes."},
		} {
			status := 200
			if c.want.Error != "" {
				status = 400
			}
			target := "/debug/locks?" + url.Values{"key": {key}}.Encode()
			r := readReport(t, get(page, target+"&format=json"), status)
			if !reflect.DeepEqual(*r.LookUp, c.want) || r.Held.Locks != nil || r.Waiting.Locks != nil {
				t.Errorf("%q: %+v, want %+v", key, r.LookUp, c.want)
			}
			w := get(page, target)
			if strings.Contains(w.Body.String(), `badge good`) != (c.want.State == "free" && c.want.Meant == "") {
				t.Errorf("%q is free in the wrong colour", key)
			}
			if text := readable(w.Body.String()); w.Code != status || !strings.Contains(text, c.text) || strings.Contains(text, "Held by this process") {
				t.Errorf("%d, want %d and %q in:\n%s", w.Code, status, c.text, text)
			}
		}
		server.Del("lock:java")
		unlock(t, theirs, mine)
	})
}

func TestLockPageLooksUpForms(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, server *miniredis.Miniredis) {
		at := time.Now().UTC()
		mine := take(t, t.Context(), l, "price", core.Shared(), core.Owner("a"))
		theirs := take(t, t.Context(), other, "price", core.Shared(), core.Owner("b"), core.FixedLease(time.Minute))
		one := take(t, t.Context(), other, "tenant", core.Permits(2), core.Weight(2))
		heavy, light := take(t, t.Context(), other, "two", core.Permits(9), core.Weight(4), core.Owner("c")), take(t, t.Context(), other, "two", core.Permits(9), core.Owner("d"))
		server.HSet("lock:upload", "mode", "h7 ab 60000")
		server.HSet("lock:paid", "mode", "w60000 ab", "latchkey:answer", "ab {}")
		server.HSet("lock:paying", "mode", "i1 ab 60000")
		server.Set("lock:theirs", "SET NX")
		for _, key := range []string{"upload", "paid", "paying", "theirs"} {
			server.SetTTL("lock:"+key, time.Minute)
		}
		time.Sleep(5 * time.Second)
		ofOne := holder{
			Owner: one.Owner(), Process: &process{"other", os.Getpid(), at}, Count: 1, Weight: 2, TTL: 25000, HeldFor: 5000, Renewed: 5000,
		}
		for key, c := range map[string]struct {
			want lookedUp
			text string
		}{
			"price": {lookedUp{Key: "price", State: "held", Form: "shared", holder: holder{Count: 2, TTL: 55000}, Holders: []holder{
				{Owner: "a", Count: 1, TTL: 25000, HeldFor: 5000, Renewed: 5000, Here: &heldLock{Key: "price", Owner: "a", Form: "shared", Token: mine.Token(), Since: at, TTL: 24990, Count: 1}},
				{Owner: "b", Count: 1, TTL: 55000, HeldFor: 4999},
			}}, "price shared by 2 Left in Redis unless renewed 55 s Calls waiting here 0 Those who hold it Owner Holds Left unless renewed By force " +
				"this process, for 5.0 s a 1 25 s Put it out now b 1 55 s Put it out now To put a holder out does not stop it."},
			"tenant": {lookedUp{Key: "tenant", State: "held", Form: "permits", holder: ofOne, Holders: []holder{ofOne}},
				"tenant permits in use: 2 Owner " + ownerText("other", one) + " Holds 1, with 2 permits Held for 5.0 s Renewed 5.0 s ago Left"},
			"two": {lookedUp{Key: "two", State: "held", Form: "permits", holder: holder{Count: 2, Weight: 5, TTL: 25000}, Holders: []holder{
				{Owner: "c", Count: 1, Weight: 4, TTL: 25000, HeldFor: 5000, Renewed: 5000},
				{Owner: "d", Count: 1, Weight: 1, TTL: 25000, HeldFor: 4999, Renewed: 5000},
			}}, "two permits in use: 5 Left in Redis unless renewed 25 s Calls waiting here 0 Those who hold it Owner Holds Left unless renewed By force " +
				"c 1, with 4 permits 25 s Put it out now d 1 25 s Put it out now"},
			"upload": {lookedUp{Key: "upload", State: "parked", holder: holder{TTL: 55000}},
				"upload parked Left until it is free 55 s Calls waiting here 0 Free this lock by force The lock was handed over"},
			"paid": {lookedUp{Key: "paid", State: "answered", holder: holder{TTL: 55000}},
				"paid answered Left until it is free 55 s Calls waiting here 0 Free this lock by force The work was done, and those who ask for it again get its result or answer."},
			"theirs": {lookedUp{Key: "theirs", State: "foreign", holder: holder{TTL: 55000}},
				"theirs foreign Left until it is free 55 s Calls waiting here 0 Free this lock by force This is no lock of latchkey."},
			"paying": {lookedUp{Key: "paying", State: "outcome_unknown", holder: holder{TTL: 55000}},
				"paying outcome unknown Left until it is free 55 s Calls waiting here 0 Free this lock by force Nobody knows what the last attempt at the work has done."},
		} {
			r := readReport(t, get(page, "/?format=json&key="+key), 200)
			if !reflect.DeepEqual(*r.LookUp, c.want) {
				t.Errorf("%q: %+v, want %+v", key, r.LookUp, c.want)
			}
			if text := readable(get(page, "/?key="+key).Body.String()); !strings.Contains(text, c.text) {
				t.Errorf("%q: want %q in:\n%s", key, c.text, text)
			}
		}
		if text := readable(get(page, "/").Body.String()); !strings.Contains(text, "price shared as a 5.0 s") {
			t.Errorf("the list does not say that one is shared:\n%s", text)
		}
		unlock(t, mine, theirs, one, heavy, light)
	})
}

// What Redis says counts, also when this process does not know it yet.
func TestLockPageKnowsItsOwnLocks(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, server *miniredis.Miniredis) {
		looksUp := func(key, owner string, here bool) {
			t.Helper()
			r := readReport(t, get(page, "/?format=json&key="+key), 200)
			if r.LookUp.Owner != owner || (r.LookUp.Here != nil) != here {
				t.Errorf("%+v, want owner %s, held here: %t", r.LookUp, owner, here)
			}
		}
		gone, mine := take(t, t.Context(), l, "gone"), take(t, t.Context(), l, "mine", core.Owner("me"))
		server.Del("lock:gone")
		taken, theirs := take(t, t.Context(), other, "gone"), take(t, t.Context(), other, "theirs", core.Owner("me"))
		looksUp("mine", "me", true)
		looksUp("theirs", "me", false)
		looksUp("gone", taken.Owner(), false)
		unlock(t, taken, mine, theirs)
		if err := gone.Unlock(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Error(err)
		}
	})
}

// What the process holds of the key is shown all the same, and nobody learns Redis's address.
func TestLockPageWhenRedisFails(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, server *miniredis.Miniredis) {
		k := take(t, t.Context(), l, "k")
		server.SetError("ERR secret of 10.9.8.7")
		log := logged(func() {
			for _, target := range []string{"/?key=k", "/?key=k&format=json"} {
				w := get(page, target)
				body := w.Body.String()
				if w.Code != 503 || !strings.Contains(body, "Redis did not answer") || !strings.Contains(body, k.Owner()) || strings.Contains(body, "secret") {
					t.Errorf("%d %s", w.Code, body)
				}
			}
			if w := get(page, "/"); w.Code != 200 {
				t.Errorf("without a look-up: %d", w.Code)
			}
			r := readReport(t, send(page, "POST", "/?format=json&key=k&owner="+k.Owner()), 503)
			if r.Outcome != "" || r.LookUp.State != "unknown" {
				t.Errorf("%+v", r)
			}
		})
		if strings.Count(log, "could not look up a key") != 3 || !strings.Contains(log, "freeing a lock from the lock page failed") || !strings.Contains(log, "secret") {
			t.Errorf("log: %s", log)
		}
		server.SetError("")
		unlock(t, k)
	})
}

func TestLockPageAndAClientThatLeaves(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		log := logged(func() {
			for _, method := range []string{"GET", "POST"} {
				page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, method, "/?key=k&owner=", nil))
			}
		})
		if log != "" {
			t.Errorf("log: %s", log)
		}
	})
}

func TestLockPageOfAClosedLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locktest.New(t)
		page := httplock.LockPage(l)
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := readReport(t, get(page, "/?key=k&format=json"), 503)
		if r.LookUp.Error != "The Locker is closed." {
			t.Errorf("%+v", r)
		}
		if r := readReport(t, get(page, "/?format=json"), 200); r.Held.Locks == nil || r.Waiting.Locks == nil {
			t.Errorf("%+v", r)
		}
		text := readable(get(page, "/").Body.String())
		for _, want := range []string{"This process holds no lock.", "No call of this process waits."} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q:\n%s", want, text)
			}
		}
	})
}

func TestLockPageWithoutALocker(t *testing.T) {
	page := httplock.LockPage(nil)
	if w := get(page, "/"); w.Code != 500 || !strings.Contains(w.Body.String(), "call core.SetDefault") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	core.SetDefault(locktest.New(t))
	defer core.SetDefault(nil)
	if w := get(page, "/"); w.Code != 200 {
		t.Errorf("with a default: %d %s", w.Code, w.Body)
	}
}

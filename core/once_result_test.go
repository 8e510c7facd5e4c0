//go:build go1.25

package core_test

import (
	"context"
	"encoding/json"
	"math/big"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// counted counts how many of it are read at once.
type counted struct{ Text string }

var readers, mostReaders atomic.Int32

func (c *counted) UnmarshalJSON(text []byte) error {
	if n := readers.Add(1); n > mostReaders.Load() {
		mostReaders.Store(n)
	}
	defer readers.Add(-1)
	for range 100 {
		runtime.Gosched()
	}
	return json.Unmarshal(text, &c.Text)
}

func (c counted) MarshalJSON() ([]byte, error) { return json.Marshal(c.Text) }

// A result for thousands leaves the processors to others as well.
func TestOnceIsReadByFewAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(kept))
		var calls sync.WaitGroup
		for range 500 {
			calls.Go(func() {
				got, err := core.Once(background, l, "k", func(context.Context) (counted, error) { time.Sleep(time.Second); return counted{"a"}, nil })
				if got.Text != "a" || err != nil {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		calls.Wait()
		if n := mostReaders.Load(); int(n) > runtime.GOMAXPROCS(0) || n == 0 {
			t.Errorf("%d read at once, on %d processors", n, runtime.GOMAXPROCS(0))
		}
	})
}

// keepsNot calls Once with a result that JSON would give back as another one.
func keepsNot[T any](t *testing.T, s *embedded, l *core.Locker, result T) {
	t.Helper()
	got, err := core.Once(background, l, "k", func(context.Context) (T, error) { return result, nil })
	if !reflect.DeepEqual(got, result) || err == nil || !strings.Contains(err.Error(), "read back as another one") {
		t.Errorf("%T: %v, %v", result, got, err)
	}
	s.isFree("k")
}

// keeps calls Once twice with a result, and returns what the second call gets.
func keeps[T any](t *testing.T, s *embedded, l *core.Locker, result T) (again T) {
	t.Helper()
	for range 2 {
		var err error
		if again, err = core.Once(background, l, "k", func(context.Context) (T, error) { return result, nil }); err != nil {
			t.Errorf("%T: %v", result, err)
		}
	}
	s.Del("lock:k")
	return again
}

type (
	hidden  struct{ ID int }
	account struct {
		hidden
		Name   string
		secret string
	}
	shadowed struct {
		hidden
		ID string
	}
	untold struct {
		Name  string
		Token string `json:"-"`
	}
	dated struct { // all of its JSON is that of the time
		time.Time
		Name string
	}
	full struct {
		At     time.Time
		Until  *time.Time
		Amount *big.Int
		IP     net.IP
		Lines  []any
		By     map[string]hidden
		Empty  []string `json:",omitempty"`
		Raw    []byte
		Nested *full
		Rate   float32
		done   func()
	}
)

// What JSON changes is no result for others: they would get another one, or panic.
func TestOnceKeepsNoResultThatJSONChanges(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(kept))
		for _, result := range []any{
			7, hidden{1}, &hidden{1}, []byte("a"), time.Now(), []string{"a"}, errBoom, map[string]any{"n": 7},
			[]any{1.5, []any{hidden{}}}, (*hidden)(nil),
		} {
			keepsNot(t, s, l, result)
		}
		keepsNot(t, s, l, untold{"a", "b"})
		keepsNot(t, s, l, []*untold{nil, {"a", "b"}})
		keepsNot(t, s, l, map[string]untold{"u": {"a", "b"}})
		keepsNot(t, s, l, shadowed{hidden{1}, "1"})
		keepsNot(t, s, l, dated{time.Now(), "a"})
		keepsNot(t, s, l, struct {
			F *int `json:"-"`
		}{new(int)})
	})
}

// What JSON gives back counts as it is, in whatever form a type may have it: unexported fields do not.
func TestOnceKeepsWhatJSONGivesBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(kept))
		now := time.Now()
		of := full{
			At: now, Until: &now, Amount: big.NewInt(1 << 62), IP: net.IPv4(10, 0, 0, 1).To4(), Lines: []any{1.5, "a", nil, true, map[string]any{}},
			By: map[string]hidden{"a": {1}}, Empty: []string{}, Raw: []byte("a"), Nested: &full{Amount: new(big.Int)}, Rate: 0.1, done: func() {},
		}
		got := keeps(t, s, l, of)
		if !got.At.Equal(now) || got.By["a"].ID != 1 || got.Nested == nil || got.IP.String() != "10.0.0.1" || got.done != nil {
			t.Errorf("%+v", got)
		}
		if got := keeps(t, s, l, account{hidden{1}, "a", "b"}); got != (account{hidden{1}, "a", ""}) {
			t.Errorf("%+v", got)
		}
		keeps(t, s, l, untold{Name: "a"})
		keeps(t, s, l, dated{Time: now})
		keeps(t, s, l, shadowed{ID: "1"})
		keeps(t, s, l, now)
		keeps(t, s, l, map[time.Time]int{now: 1})
		keeps[any](t, s, l, map[string]any{"a": []any{1.5}})
		keeps[any](t, s, l, nil)
		keeps[*int](t, s, l, nil)
		keeps(t, s, l, [2]bool{true})
	})
}

// child knows its parent, as UnmarshalJSON has told it.
type child struct {
	Name     string
	Parent   *child `json:"-"`
	Children []*child
}

func (c *child) UnmarshalJSON(text []byte) error {
	type plain child
	err := json.Unmarshal(text, (*plain)(c))
	for _, of := range c.Children {
		of.Parent = c
	}
	return err
}

// A result that leads back to itself is kept, and one that has lost its way back is not.
func TestOnceComparesWhatLeadsBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, root := s.locker(core.KeepFor(kept)), &child{Name: "root", Children: []*child{{Name: "a"}, {Name: "b"}}}
		keepsNot(t, s, l, root)
		for _, of := range root.Children {
			of.Parent = root
		}
		if got := keeps(t, s, l, root); !reflect.DeepEqual(got, root) {
			t.Errorf("%+v", got)
		}
	})
}

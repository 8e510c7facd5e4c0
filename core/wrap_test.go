package core_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func orderKey(id int) (string, error) {
	if id < 0 {
		return "", errEnough
	}
	return "order:" + strconv.Itoa(id), nil
}

func TestWrapLocksTheKeyOfItsInput(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		double := core.Wrap(l, orderKey, func(ctx context.Context, id int) (int, error) {
			k, ok := core.FromContext(ctx)
			if want := "order:" + strconv.Itoa(id); !ok || k.Key() != want || s.held(want) == "" {
				t.Errorf("%s is not held", want)
			}
			return 2 * id, nil
		})
		for _, id := range []int{1, 21} {
			if out, err := double(background, id); out != 2*id || err != nil {
				t.Errorf("%d, %v", out, err)
			}
			s.isFree("order:" + strconv.Itoa(id))
		}
	})
}

func TestWrapReturnsWhatFnReturned(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		boom := errors.New("boom")
		f := core.Wrap(l, orderKey, func(context.Context, int) (string, error) { return "partial", boom })
		if out, err := f(background, 1); out != "partial" || err != boom {
			t.Errorf("%q, %v", out, err)
		}
		g := core.Wrap(l, orderKey, func(context.Context, int) (string, error) { s.Del("lock:order:1"); return "done", nil })
		out, err := g(background, 1)
		wantErr(t, err, core.ErrLost)
		if out != "done" {
			t.Errorf("output %q", out)
		}
	})
}

func TestInvariant1WrapNeverRunsUnlocked(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		f := core.Wrap(l, orderKey, func(context.Context, int) (int, error) { t.Error("fn ran"); return 1, nil }, core.NoWait())
		if out, err := f(background, -1); err != errEnough || out != 0 {
			t.Errorf("%d, %v; want the key function's own error", out, err)
		}
		holder := take(t, background, l, "order:1")
		out, err := f(background, 1)
		wantBusy(t, err)
		if out != 0 {
			t.Errorf("output %d", out)
		}
		unlock(t, holder)
	})
}

func TestWrapFreesOnPanic(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		f := core.Wrap(l, orderKey, func(context.Context, int) (int, error) { panic(errEnough) }, core.KeepFor(time.Minute))
		func() {
			defer func() {
				if v := recover(); v != errEnough {
					t.Errorf("recovered %v", v)
				}
			}()
			_, _ = f(background, 1)
		}()
		s.isFree("order:1")
	})
}

func TestWrapReentersThroughTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		inner := core.Wrap(l, orderKey, func(context.Context, int) (string, error) { return s.held("order:1"), nil })
		outer := core.Wrap(l, orderKey, func(ctx context.Context, id int) (string, error) { return inner(ctx, id) })
		out, err := outer(background, 1)
		if err != nil || !strings.HasSuffix(out, "=2") {
			t.Errorf("%q, %v", out, err)
		}
	})
}

func TestWrapPanicsAtSetUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		fn := func(context.Context, int) (int, error) { return 0, nil }
		for name, wrap := range map[string]func(){
			"nil Locker":      func() { core.Wrap(nil, orderKey, fn) },
			"nil key":         func() { core.Wrap(l, nil, fn) },
			"nil fn":          func() { core.Wrap[int, int](l, orderKey, nil) },
			"bad option":      func() { core.Wrap(l, orderKey, fn, core.Lease(0)) },
			"Owner":           func() { core.Wrap(l, orderKey, fn, core.Owner("o")) },
			"of New":          func() { core.Wrap(l, orderKey, fn, core.Prefix("p")) },
			"an empty Option": func() { core.Wrap(l, orderKey, fn, core.Option{}) },
		} {
			func() {
				defer func() {
					v := recover()
					text, _ := v.(string)
					if err, ok := v.(error); ok {
						text = err.Error()
					}
					if !strings.HasPrefix(text, "core: ") {
						t.Errorf("%s: panic value %v", name, v)
					}
				}()
				wrap()
			}()
		}
	})
}

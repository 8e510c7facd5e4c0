package core_test

import (
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core"
)

func TestKeyLimits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for _, key := range []string{"", strings.Repeat("k", 1025)} {
			before := s.scripts()
			_, err := l.Lock(background, key)
			wantErr(t, err, core.ErrInvalidKey)
			_, err = l.TryLock(background, key)
			wantErr(t, err, core.ErrInvalidKey)
			_, err = l.Inspect(background, key)
			wantErr(t, err, core.ErrInvalidKey)
			_, err = l.ForceUnlock(background, key)
			wantErr(t, err, core.ErrInvalidKey)
			wantErr(t, l.Do(background, key, noWork), core.ErrInvalidKey)
			if s.scripts() != before {
				t.Error("Redis was asked for a bad key")
			}
		}
		// The limit is before encoding.
		for _, key := range []string{"k", strings.Repeat("k", 1024), strings.Repeat("{", 1024)} {
			k := take(t, background, l, key)
			if k.Key() != key {
				t.Errorf("Key is %q; want it as the caller wrote it", k.Key())
			}
			unlock(t, k)
		}
	})
}

func TestKeyEncoding(t *testing.T) {
	for key, want := range map[string]string{
		"order:42":                "lock:order:42",
		"a b/c?d=e&f":             "lock:a b/c?d=e&f",
		"100%":                    "lock:100%25",
		"%7B":                     "lock:%257B",
		"{slot}x":                 "lock:%7Bslot%7Dx",
		"a\nb\x00\x1f":            "lock:a%0Ab%00%1F",
		"\x7f":                    "lock:%7F",
		"straße 東京 🔒":             "lock:straße 東京 🔒",
		"\xff\xfe":                "lock:%FF%FE",
		"ok\xe6\x9d":              "lock:ok%E6%9D",
		"\ufffd":                  "lock:\ufffd",
		"\xed\xa0\x80":            "lock:%ED%A0%80", // a surrogate is not UTF-8
		"\xc0\xaf":                "lock:%C0%AF",    // neither is an overlong form
		strings.Repeat("k", 1024): "lock:" + strings.Repeat("k", 1024),
	} {
		bubble(t, func(t *testing.T, s *embedded) {
			l := s.locker()
			k := take(t, background, l, key)
			if !s.Exists(want) {
				t.Errorf("%q: Redis shows %q; want %q", key, s.Keys(), want)
			}
			if !s.Exists(clockOf(want)) {
				t.Errorf("%q: Redis shows %q", key, s.Keys())
			}
			if info, err := l.Inspect(background, key); err != nil || info.Owner != k.Owner() {
				t.Errorf("Inspect: %+v, %v", info, err)
			}
			unlock(t, k)
		})
	}
}

func TestBusyErrorHasTheKeyAsWritten(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		holder := take(t, background, l, "{%\n}")
		_, err := l.TryLock(background, "{%\n}")
		if busy := wantBusy(t, err); busy.Key != "{%\n}" {
			t.Errorf("Key %q", busy.Key)
		}
		if !strings.HasPrefix(err.Error(), "core: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("message %q", err)
		}
		unlock(t, holder)
	})
}

package store

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var hexPair = regexp.MustCompile(`%[0-9A-F]{2}`)

// FuzzEncode shows that no two keys share an encoding: every key comes back from
// its own. And none has what may not be in it.
func FuzzEncode(f *testing.F) {
	for _, key := range []string{"", "order:42", "%", "%25", "{a}", "a\nb", "\xff", "\xe6\x9d", "東京", "\ufffd", "\x7f"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		encoded := encode(key)
		back, err := url.PathUnescape(encoded)
		if err != nil || back != key {
			t.Errorf("%q is encoded as %q, which is %q (%v)", key, encoded, back, err)
		}
		if got := NewName("lock%:", key).Key(); got != key {
			t.Errorf("the name of %q is one of %q", key, got)
		}
		control := func(r rune) bool { return r < 0x80 && unicode.IsControl(r) }
		if strings.ContainsAny(encoded, "{}") || strings.ContainsFunc(encoded, control) || !utf8.ValidString(encoded) {
			t.Errorf("%q is encoded as %q", key, encoded)
		}
		if n := strings.Count(encoded, "%"); n != len(hexPair.FindAllString(encoded, -1)) {
			t.Errorf("%q is encoded as %q: not upper-case hex", key, encoded)
		}
	})
}

// Others have these names too: Redisson, and a version of this package that is deployed
// beside this one.
func TestNamesInRedis(t *testing.T) {
	n := NewName("lock:", "{a}")
	for got, want := range map[string]string{
		n.Lock():            "lock:%7Ba%7D",
		n.Channel():         "redisson_lock__channel:{lock:%7Ba%7D}",
		n.queue():           "lock:{lock:%7Ba%7D}:queue",
		ProcessChannel("p"): "516b9783fca517eecbd1d064da2d165310b19759",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A cluster takes a script only if all its keys are in one slot.
func TestClockIsInTheSlotOfItsLocks(t *testing.T) {
	for slot, tag := range tags() {
		if got := slotOf(string(tag[:])); got != slot {
			t.Fatalf("tag %s of slot %d is in %d", tag, slot, got)
		}
	}
	for lock, slot := range map[string]int{"123456789": 0x31c3, "": 0, "foo": 12182} { // as CLUSTER KEYSLOT says
		if got := slotOf(lock); got != slot {
			t.Errorf("%q is in slot %d, want %d", lock, got, slot)
		}
	}
	n := NewName("lock:", "{a}")
	tag := tags()[slotOf(n.Lock())]
	if got, want := n.clock(), "lock:latchkey:clock:{"+string(tag[:])+"}"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestKeysInTheFirstSlot(t *testing.T) {
	for i := range 1000 {
		for _, prefix := range []string{"lock:", "", "東京%:"} {
			start := strconv.Itoa(i * i)
			key := InFirstSlot(prefix, start)
			if slot := slotOf(NewName(prefix, key).Lock()); slot != 0 || !strings.HasPrefix(key, start) {
				t.Fatalf("%q of %q is in slot %d", key, start, slot)
			}
		}
	}
}

// A caller who chooses such an owner would overwrite what a lock needs.
func TestFieldsOfOurOwn(t *testing.T) {
	for field, want := range map[string]bool{"mode": true, "latchkey:left": true, "latchkey:": true, "modes": false, "p:1": false, "my-latchkey:": false} {
		if got := IsOwnField(field); got != want {
			t.Errorf("%q: %v", field, got)
		}
	}
}

package core_test

import (
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core"
)

// slotOf is the slot of a key in a cluster: CRC-16/XMODEM of what it hashes.
func slotOf(key string) int {
	crc := 0
	for _, b := range []byte(hashTag(key)) {
		crc ^= int(b) << 8
		for range 8 {
			crc <<= 1
			if crc&0x10000 != 0 {
				crc ^= 0x11021
			}
		}
	}
	return crc % 16384
}

// clockOf is the fencing clock of a lock, by its name in Redis: the tag is the first of
// three letters or digits that has its slot.
func clockOf(lock string) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	prefix, _, _ := strings.Cut(lock, ":")
	for _, a := range letters {
		for _, b := range letters {
			for _, c := range letters {
				if tag := string([]rune{a, b, c}); slotOf(tag) == slotOf(lock) {
					return prefix + ":latchkey:clock:{" + tag + "}"
				}
			}
		}
	}
	panic("no tag for a slot")
}

// Locks leave nothing of their own behind, but for what is common to those of a hash
// slot. Taken out, ten million locks that are used once fill the memory.
func TestFencingClockIsSharedByTheLocksOfASlot(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		// Both in one slot, which was searched for.
		a, b := "22", "3300"
		if slotOf("lock:"+a) != slotOf("lock:"+b) {
			t.Fatal("the keys are not in one slot")
		}
		last := int64(0)
		for _, key := range []string{a, b, a, b} {
			k := take(t, background, l, key)
			if k.Token() <= last {
				t.Errorf("token %d after %d", k.Token(), last)
			}
			last = k.Token()
			unlock(t, k)
		}
		clock := clockOf("lock:" + a)
		if keys := s.Keys(); len(keys) != 1 || keys[0] != clock {
			t.Errorf("keys that stay: %v; want %s", keys, clock)
		}
		if ttl := s.TTL(clock); ttl != 0 {
			t.Errorf("the clock ends in %v", ttl)
		}
	})
}

// The holder may have given tokens to calls of its process that Redis has not heard of.
// Taken out, the next holder has one of them as well.
func TestForceUnlockLeavesTheTokensOfTheHolderBehind(t *testing.T) {
	for name, opts := range map[string][]core.Option{"": nil, "fixed": {core.FixedLease(lease)}, "owner": {core.Owner("job")}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k", opts...)
				if freed, err := l.ForceUnlock(background, "k"); !freed || err != nil {
					t.Fatal(freed, err)
				}
				next := take(t, background, l, "k")
				if least := k.Token() + 10_000; next.Token() <= least {
					t.Errorf("token %d after %d", next.Token(), k.Token())
				}
				wantErr(t, k.Unlock(background), core.ErrLost)
				unlock(t, next)
			})
		})
	}
}

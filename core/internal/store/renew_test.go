package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The script that renews several locks does it where the owner has the lock with that token, and shortens no lease
// but that of a lock of which no more is known. The rest it leaves to renew.lua.
func TestRenewalOfSeveralLocks(t *testing.T) {
	client := redistest.Start(t).Client(t)
	text, _, err := redistest.ReadScript("renew_all")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		what, plain, hash string
		ttl               time.Duration // before
		held              bool
		want              time.Duration // after
	}{
		{"plain", "x7 5000", "p:1 1 mode x7|5000", time.Minute, true, 5 * time.Second},
		{"of the usual lease", "x7", "p:1 1 mode x7", time.Minute, true, 5 * time.Second},
		{"somebody waits", "x7 5000", "p:1 1 mode x7|5000+", time.Second, true, 5 * time.Second},
		{"somebody waits, and it lasts longer", "x7 5000", "p:1 1 mode x7|5000+", time.Minute, true, time.Minute},
		{"it was granted", "x7", "p:1 1 mode x7|30000+", time.Second, true, 5 * time.Second},
		{"with other holds", "x7", "p:1 2 mode x7|30000|p:1|p:2+", time.Minute, true, time.Minute},
		{"Redisson has entered", "x7", "p:1 2 mode x7", time.Minute, true, time.Minute},
		{"of another lease", "x7", "p:1 1 mode x7|9000", time.Minute, true, time.Minute},
		{"another token", "x7", "p:1 1 mode x8", time.Minute, false, time.Minute},
		{"a longer token", "x7 5000", "p:1 1 mode x75|5000", time.Minute, false, time.Minute},
		{"a shorter token", "x75", "p:1 1 mode x7", time.Minute, false, time.Minute},
		{"another owner", "x7", "p:2 1 mode x7", time.Minute, false, time.Minute},
		{"Redisson's", "x7", "p:1 1", time.Minute, false, time.Minute},
		{"shared", "x7", "latchkey:holder:p:1 1|2|7|p:1 mode s", time.Minute, false, time.Minute},
		{"a dedup window", "x7", "mode w5000", time.Minute, false, time.Minute},
		{"gone", "x7", "", 0, false, -2},
		{"of another type", "x7", "", time.Minute, false, time.Minute},
	}
	var keys []string
	var args []any
	for _, tc := range cases {
		if fields := strings.Fields(tc.hash); len(fields) > 0 {
			for i := range fields {
				fields[i] = strings.ReplaceAll(fields[i], "|", " ")
			}
			client.HSet(background, tc.what, fields)
			client.PExpire(background, tc.what, tc.ttl)
		} else if tc.ttl > 0 {
			client.Set(background, tc.what, "text", tc.ttl)
		}
		keys, args = append(keys, tc.what), append(args, "p:1", tc.plain, 5000)
	}
	replies, err := client.Eval(background, text, keys, args...).Slice()
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range cases {
		if held := replies[i] == "10p:1x7 5000"; held != tc.held || !held && replies[i] != nil {
			t.Errorf("%s: %v", tc.what, replies[i])
		}
		if ttl := client.PTTL(background, tc.what).Val(); ttl > tc.want || ttl < tc.want-time.Second {
			t.Errorf("%s: it lasts %v, want %v", tc.what, ttl, tc.want)
		}
	}
}

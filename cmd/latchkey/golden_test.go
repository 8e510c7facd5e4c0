package main

import (
	"encoding/base64"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

var update = flag.Bool("update", false, "write the golden files")

// hold is that of a process of that name and number.
func hold(name string, pid uint32) string {
	var facts [15]byte
	binary.BigEndian.PutUint32(facts[3:], pid)
	binary.BigEndian.PutUint32(facts[:], 1795269600) // 14:00 UTC
	return name + "@" + base64.RawURLEncoding.EncodeToString(facts[:]) + ":w4nB0pJrXfE"
}

// night is a Redis in which time stands still at 14:11:32 UTC.
func night(t *testing.T) *miniredis.Miniredis {
	server := miniredis.RunT(t)
	now := time.UnixMicro(1795270292000000)
	server.SetTime(now)
	ago := func(d time.Duration) string { return fmt.Sprint(now.Add(-d).UnixMicro()) }
	score := func(d time.Duration) float64 { return float64(now.Add(-d).UnixMicro()) }
	until := func(d time.Duration) string { return ago(-d) }
	a, b, c := hold("shop-b41a", 4711), hold("shop-c07f", 4712), hold("unusually-long-", 16777215)

	lock := func(key string, ttl time.Duration, fields ...string) {
		server.HSet("lock:"+key, fields...)
		server.SetTTL("lock:"+key, ttl)
	}
	lock("orderID=42", 27600*time.Millisecond, "mode", "x"+ago(2*time.Minute)+"+", a, "1")
	for member, at := range map[string]float64{
		b: score(12 * time.Second), c + "|p3w2": score(3*time.Second) + 0.5, hold("shop-c07f", 4712) + " import-7": score(500 * time.Millisecond),
		"!" + c + "|p3w2": 5e16 + score(-time.Second), hold("dead", 1): 5e16 + score(-time.Minute),
	} {
		_, _ = server.ZAdd("lock:{lock:orderID=42}:queue", at, member)
	}
	lock("granted", time.Second, "mode", "x"+ago(200*time.Millisecond)+" 0+", b, "1")
	lock("price", 30*time.Second, "mode", "s",
		"latchkey:holder:"+a, until(11200*time.Millisecond)+" 30000 "+ago(70*time.Second)+" "+a,
		"latchkey:holder:reader", until(30*time.Second)+" 30000 "+ago(time.Second)+" "+b)
	lock("tenant", 30*time.Second, "mode", "p", "latchkey:holder:"+a, until(30*time.Second)+" 30000 "+ago(time.Second)+" "+a, "latchkey:weight:1:"+a, "-")
	lock("upload", time.Hour, "mode", "h"+ago(time.Minute)+" a94a8fe5ccb19ba61c4c0873d391e987982fbbd3 3600000", "latchkey:by", a)
	lock("resumed", time.Hour, "mode", "h"+ago(time.Minute)+" a94a8fe5ccb19ba61c4c0873d391e987982fbbd3 3600000", "latchkey:by", a,
		"latchkey:holder:"+b, until(25*time.Second)+" -30000 "+ago(time.Minute)+" "+b)
	task := "asynq:5dda94ad3b8c41d2a1f0c8e7b6a59483:" // of KeepOne
	lock("report=7", 11*time.Second, "mode", "x"+ago(time.Minute)+" 12000 "+a, task+a, "1")
	lock("KeepOne=reindex:report=7", 4*time.Minute, "mode", "h"+ago(time.Minute)+" a94a8fe5ccb19ba61c4c0873d391e987982fbbd3 300000", "latchkey:by", task+b)
	lock("mail", time.Hour, "mode", "w3600000")
	lock("paying", time.Hour, "mode", "i3 ab 3600000", "latchkey:holder:"+a, until(30*time.Second)+" 30000 "+ago(time.Second)+" "+a)
	lock("paid", time.Hour, "mode", "w3600000 ab", "latchkey:answer", "ab {}")
	lock("unknown", time.Hour, "mode", "i1 ab 3600000")
	server.HSet("lock:java", "c0ffee:1", "2")
	server.HSet("lock:persisted", "mode", "x"+ago(time.Minute), a, "1")
	lock(strings.Repeat("customer-", 20)+"end", 27*time.Hour, "mode", "x"+ago(26*time.Hour), c, "1")
	lock("chosen", time.Hour, "mode", "x"+ago(time.Hour)+" 30000 "+c, "an owner that somebody has chosen, and it is rather long", "1")
	return server
}

// The JSON of ls and show is a promise: the files change by intention only. What a terminal gets has at most 80 columns,
// but for keys and owners, which show does not shorten.
func TestGolden(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	server, long := night(t), regexp.MustCompile(`asynq:|idempotent:`)
	for name, c := range map[string]struct {
		args []string
		exit int
	}{
		"ls":            {[]string{"ls"}, 0},
		"ls-held-for":   {[]string{"ls", "-held-for", "1m"}, 0},
		"ls-state":      {[]string{"ls", "-state", "outcome unknown"}, 0},
		"ls-part":       {[]string{"ls", "pa"}, 0},
		"ls-waiting":    {[]string{"ls", "-waiting"}, 0},
		"ls.json":       {[]string{"ls", "-json"}, 0},
		"ls-held.json":  {[]string{"ls", "-json", "-held-for", "90s", "order"}, 0},
		"ls-none.json":  {[]string{"ls", "-json", "nothing"}, 0},
		"show":          {[]string{"show", "orderID=42"}, 0},
		"show.json":     {[]string{"show", "-json", "orderID=42"}, 0},
		"show-parked":   {[]string{"show", "upload"}, 0},
		"parked.json":   {[]string{"show", "-json", "upload"}, 0},
		"show-attempt":  {[]string{"show", "paying"}, 0},
		"show-task":     {[]string{"show", "report=7"}, 0},
		"show-resumed":  {[]string{"show", "resumed"}, 0},
		"show-keepone":  {[]string{"show", "KeepOne=reindex:report=7"}, 0},
		"show-dead":     {[]string{"show", "price"}, 0},
		"show-scope":    {[]string{"show", "-idempotent", "userID", "K"}, exitFree},
		"show-granted":  {[]string{"show", "granted"}, 0},
		"show-free":     {[]string{"show", "42"}, exitFree},
		"free.json":     {[]string{"show", "-json", "42"}, exitFree},
		"show-endless":  {[]string{"show", "persisted"}, 0},
		"show-redisson": {[]string{"show", "java"}, 0},
	} {
		exit, said := ask(t, server.Addr(), "", c.args...)
		said = strings.ReplaceAll(said, server.Addr(), "redis:6379")
		if exit != c.exit {
			t.Errorf("%s: exit code %d, want %d", name, exit, c.exit)
		}
		for _, line := range strings.Split(said, "\n") {
			if width(line) > columns && !strings.HasSuffix(name, ".json") && !long.MatchString(line) {
				t.Errorf("%s: %d columns: %s", name, width(line), line)
			}
		}
		file := filepath.Join("testdata", name)
		if filepath.Ext(file) == "" {
			file += ".txt"
		}
		if *update {
			if err := os.WriteFile(file, []byte(said), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != said {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, said, want)
		}
	}
}

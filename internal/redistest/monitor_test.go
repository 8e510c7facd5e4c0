package redistest

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestMonitorSeesEveryCommand(t *testing.T) {
	s := Start(t)
	c := s.Client(t)
	ctx := t.Context()
	script := redis.NewScript("redis.call('set', KEYS[1], ARGV[1]) return 1")
	if err := script.Load(ctx, c).Err(); err != nil {
		t.Fatal(err)
	}
	m := s.Monitor(t)
	value := "a \"quoted\" \\ \x00\xff\r\n] value"
	if err := c.Set(ctx, "k", value, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := script.EvalSha(ctx, c, []string{"k"}, value).Err(); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"set", "k", value},
		{"evalsha", script.Hash(), "1", "k", value},
		{"lua", "set", "k", value},
	}
	seen := m.Lines(t)
	if got := flat(seen); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("saw %q", got)
	}
	if seen[0].Time < 1.7e9 || seen[0].Client == "" || seen[0].Name() != "set" {
		t.Errorf("%+v", seen[0])
	}
	if got := m.Stop(t); len(got) != len(want) {
		t.Errorf("at the end saw %q", flat(got))
	}
}

func flat(lines []MonitorLine) [][]string {
	var out [][]string
	for _, l := range lines {
		if l.Lua {
			out = append(out, append([]string{"lua"}, l.Args...))
		} else {
			out = append(out, l.Args)
		}
	}
	return out
}

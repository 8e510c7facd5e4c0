package adapter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

func TestFormsThatDoNotGo(t *testing.T) {
	yes := func(int) bool { return true }
	same := func(n int) int { return n }
	window := core.KeepFor(time.Minute)
	for name, c := range map[string]struct {
		forms adapter.Forms[int]
		opts  []core.Option
		want  string // empty: it goes
	}{
		"none":           {opts: []core.Option{window, core.Shared(), {}}},
		"Shared":         {forms: adapter.Forms[int]{Shared: yes}, opts: []core.Option{core.NoWait(), {}}},
		"Permits":        {forms: adapter.Forms[int]{Permits: same}},
		"Weight":         {forms: adapter.Forms[int]{Permits: same, Weight: same}},
		"Weight of some": {forms: adapter.Forms[int]{Weight: same}, opts: []core.Option{core.Permits(2)}},
		"Weight of each": {forms: adapter.Forms[int]{Weight: same}, opts: []core.Option{core.PermitsEach(2, 3)}},
		"Weight of none": {forms: adapter.Forms[int]{Weight: same}, want: "there is a Config.Weight without permits: set Config.Permits"},
		"Weight, shared": {forms: adapter.Forms[int]{Weight: same}, opts: []core.Option{core.Shared()}, want: "there is a Config.Weight without permits: set Config.Permits"},
		"both":           {forms: adapter.Forms[int]{Shared: yes, Permits: same}, want: "there are a Config.Shared and a Config.Permits"},
		"Shared with a window": {
			forms: adapter.Forms[int]{Shared: yes}, opts: []core.Option{window}, want: "Config.Shared cannot be combined with core.KeepFor"},
		"Permits with one": {
			forms: adapter.Forms[int]{Permits: same}, opts: []core.Option{window}, want: "Config.Permits cannot be combined with core.KeepFor"},
		"Shared twice":       {forms: adapter.Forms[int]{Shared: yes}, opts: []core.Option{core.Shared()}, want: "Config.Shared decides"},
		"Permits twice":      {forms: adapter.Forms[int]{Permits: same}, opts: []core.Option{core.Permits(2)}, want: "Config.Permits decides"},
		"Permits and Shared": {forms: adapter.Forms[int]{Permits: same}, opts: []core.Option{core.Shared()}, want: "Config.Permits decides"},
	} {
		err := c.forms.Validate(c.opts...)
		if (err == nil) != (c.want == "") {
			t.Errorf("%s: %v", name, err)
		} else if err != nil && (!strings.HasPrefix(err.Error(), c.want) || !strings.Contains(err.Error(), ": leave one of them out") && !strings.Contains(err.Error(), ": set Config.Permits")) {
			t.Errorf("%s: %q, want %q and what to do about it", name, err, c.want)
		}
	}
}

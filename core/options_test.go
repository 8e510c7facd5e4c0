//go:build go1.25

package core_test

import (
	"context"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// wantMisuse fails the test unless err reports a misuse, of which every line
// names the package.
func wantMisuse(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if !strings.HasPrefix(line, "core: ") {
			t.Errorf("error %q does not begin with core: ", line)
		}
	}
	if !strings.Contains(err.Error(), part) {
		t.Errorf("error %q does not mention %q", err, part)
	}
	wantNot(t, err, core.ErrNotAcquired, core.ErrUnavailable, core.ErrLost, core.ErrClosed, core.ErrInvalidKey)
}

func TestBadOptions(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	l, err := core.New(client)
	if err != nil {
		t.Fatal(err)
	}
	const (
		inNew = 1 << iota
		inCall
		both = inNew | inCall
	)
	for _, test := range []struct {
		name  string
		opt   core.Option
		where int
		part  string
	}{
		{"Lease(0)", core.Lease(0), both, "Lease(0s)"},
		{"Lease negative", core.Lease(-time.Second), both, "Lease(-1s)"},
		{"Lease too short", core.Lease(999 * time.Microsecond), both, "1ms"},
		{"Lease too long", core.Lease(math.MaxInt64), both, "24h"},
		{"FixedLease too long", core.FixedLease(24*time.Hour + time.Millisecond), both, "24h"},
		{"KeepFor too long", core.KeepFor(math.MaxInt64), both, "8784h"},
		{"MaxHold too long", core.MaxHold(math.MaxInt64), both, "8784h"},
		{"Timeout too long", core.Timeout(math.MaxInt64), inNew, "24h"},
		{"FixedLease(0)", core.FixedLease(0), both, "FixedLease(0s)"},
		{"Wait negative", core.Wait(-1), both, "Wait(-1ns)"},
		{"Wait in another unit", core.Wait(3), both, "Wait(3ns)"},
		{"Wait too short", core.Wait(999 * time.Microsecond), both, "1ms"},
		{"KeepFor(0)", core.KeepFor(0), both, "KeepFor(0s)"},
		{"MaxHold(0)", core.MaxHold(0), both, "MaxHold(0s)"},
		{"MaxWaiters(0)", core.MaxWaiters(0), both, "MaxWaiters(0)"},
		{"MaxWaiters(-1)", core.MaxWaiters(-1), both, "MaxWaiters(-1)"},
		{"empty", core.Option{}, both, "an Option is empty"},
		{"Fallback of a bad option", adapter.Fallback(core.Wait(-1)), both, "Wait(-1ns)"},
		{"Fallback of an empty one", adapter.Fallback(core.Option{}), both, "an Option is empty"},
		{"Owner", core.Owner("o"), inNew, "Owner"},
		{"Owner empty", core.Owner(""), inCall, "empty"},
		{"Owner too long", core.Owner(strings.Repeat("o", 129)), inCall, "129"},
		{"Owner with a control byte", core.Owner("a\nb"), inCall, "control"},
		{"Owner with DEL", core.Owner("a\x7f"), inCall, "control"},
		{"Owner like our fields", core.Owner("latchkey:token"), inCall, "reserved"},
		{"OwnerBegin empty", adapter.OwnerBegin(""), both, "empty"},
		{"OwnerBegin too long", adapter.OwnerBegin(strings.Repeat("o", 65)), both, "65"},
		{"Prefix with {", core.Prefix("a{"), inNew, "Prefix"},
		{"Prefix with }", core.Prefix("a}"), inNew, "Prefix"},
		{"Prefix with a control byte", core.Prefix("a\n"), inNew, "Prefix"},
		{"Prefix empty", core.Prefix(""), inNew, `write "lock:"`},
		{"Prefix of a colon within", core.Prefix("shop:eu:"), inNew, `write "shop.eu:"`},
		{"Prefix without a colon", core.Prefix("shop"), inNew, `write "shop:"`},
		{"Prefix whose colon is not the end", core.Prefix("shop:eu"), inNew, `write "shop.eu:"`},
		{"Prefix too long", core.Prefix(strings.Repeat("p", 1025)), inNew, "Prefix"},
		{"Timeout(0)", core.Timeout(0), inNew, "Timeout(0s)"},
		{"Logger(nil)", core.Logger(nil), inNew, "Logger"},
		{"Prefix in a call", core.Prefix("p:"), inCall, "option of New"},
		{"Timeout in a call", core.Timeout(time.Second), inCall, "option of New"},
		{"Logger in a call", core.Logger(slog.Default()), inCall, "option of New"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.where&inNew != 0 {
				made, err := core.New(client, test.opt)
				wantMisuse(t, err, test.part)
				if made != nil {
					t.Error("New returned a Locker beside the error")
				}
			}
			if test.where&inCall != 0 {
				_, err := l.Lock(background, "k", test.opt)
				wantMisuse(t, err, test.part)
				_, err = l.TryLock(background, "k", test.opt)
				wantMisuse(t, err, test.part)
				wantMisuse(t, l.Do(background, "k", noWork, test.opt), test.part)
				wantMisuse(t, adapter.Validate(test.opt), test.part)
			}
		})
	}
}

// Both lose what they promise when a call is given up and tried again with the same owner.
func TestOwnerGoesNeitherWithKeepForNorInAQuorum(t *testing.T) {
	clients := make([]redis.UniversalClient, 3)
	for i := range clients {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + strconv.Itoa(i+1)})
		defer client.Close()
		clients[i] = client
	}
	open := func(l *core.Locker, err error) *core.Locker {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	owner, keep := core.Owner("o"), core.KeepFor(time.Minute)
	for name, test := range map[string]struct {
		locker *core.Locker
		opts   []core.Option
		part   string
	}{
		"KeepFor at the call":   {open(core.New(clients[0])), []core.Option{owner, keep}, "KeepFor"},
		"KeepFor of New":        {open(core.New(clients[0], keep)), []core.Option{owner}, "KeepFor"},
		"a quorum":              {open(core.NewQuorum(clients)), []core.Option{owner}, "NewQuorum"},
		"a quorum with KeepFor": {open(core.NewQuorum(clients, keep)), []core.Option{owner}, "KeepFor"},
	} {
		t.Run(name, func(t *testing.T) {
			defer test.locker.Close(background)
			_, err := test.locker.Lock(background, "k", test.opts...)
			wantMisuse(t, err, test.part)
			_, err = test.locker.TryLock(background, "k", test.opts...)
			wantMisuse(t, err, test.part)
			wantMisuse(t, test.locker.Do(background, "k", noWork, test.opts...), test.part)
		})
	}
}

func TestAllBadOptionsAreReportedAtOnce(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	_, err := core.New(client, core.Lease(0), core.Timeout(-1), core.Option{})
	for _, part := range []string{"Lease(0s)", "Timeout(-1ns)", "an Option is empty"} {
		wantMisuse(t, err, part)
	}
}

func TestGoodOptions(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	for name, opts := range map[string][]core.Option{
		"none":          nil,
		"least":         {core.Lease(time.Millisecond), core.Wait(0), core.Wait(time.Millisecond), core.KeepFor(time.Millisecond), core.MaxHold(time.Millisecond), core.MaxWaiters(1), core.Timeout(time.Millisecond)},
		"longest":       {core.Prefix(strings.Repeat("p", 1023) + ":")},
		"with fallback": {adapter.Fallback(core.Wait(time.Second), core.MaxWaiters(5))},
	} {
		if _, err := core.New(client, opts...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := adapter.Validate(core.Lease(time.Second), core.NoWait()); err != nil {
		t.Error(err)
	}
	wantMisuse(t, adapter.Validate(core.Owner("o")), "Owner")
}

func TestNilClient(t *testing.T) {
	var client *redis.Client
	var cluster *redis.ClusterClient
	var ring *redis.Ring
	for _, nothing := range []redis.UniversalClient{nil, client, cluster, ring} {
		l, err := core.New(nothing)
		wantMisuse(t, err, "client")
		if l != nil {
			t.Errorf("%T: New returned a Locker", nothing)
		}
	}
}

func TestNewDoesNoNetworkIO(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		before := s.TotalConnectionCount()
		l := s.locker()
		if s.TotalConnectionCount() != before {
			t.Error("New opened a connection")
		}
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
	})
}

func TestDefaultsAndOverrides(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Prefix("app:"), core.Lease(10*time.Second), core.Lease(20*time.Second))
		for name, test := range map[string]struct {
			opts []core.Option
			want time.Duration
		}{
			"of New, the later one":  {nil, 20 * time.Second},
			"of the call":            {[]core.Option{core.Lease(5 * time.Second)}, 5 * time.Second},
			"of the call, the later": {[]core.Option{core.Lease(5 * time.Second), core.FixedLease(7 * time.Second)}, 7 * time.Second},
			"in whole milliseconds":  {[]core.Option{core.Lease(1500 * time.Microsecond)}, time.Millisecond},
		} {
			k := take(t, background, l, "k", test.opts...)
			if got := s.TTL("app:k"); got != test.want {
				t.Errorf("%s: TTL %v; want %v", name, got, test.want)
			}
			unlock(t, k)
		}
		k := take(t, background, l, "k", core.FixedLease(5*time.Second), core.Lease(time.Second))
		time.Sleep(time.Minute)
		unlock(t, k) // Lease overrides FixedLease
	})
}

func TestLockersWithDifferentPrefixesDoNotExclude(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a := take(t, background, s.locker(core.Prefix("a:")), "k")
		b := take(t, a.Context(), s.locker(core.Prefix("b:")), "k")
		if a.Owner() == b.Owner() {
			t.Error("a lock of another prefix was re-entered")
		}
		unlock(t, b, a)
	})
}

func TestFallbackPrecedence(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		second := adapter.Fallback(core.Wait(time.Second))
		for name, test := range map[string]struct {
			ofNew, ofCall []core.Option
			want          time.Duration
		}{
			"alone":             {nil, []core.Option{second}, time.Second},
			"New said so":       {[]core.Option{core.Wait(2 * time.Second)}, []core.Option{second}, 2 * time.Second},
			"an earlier one":    {nil, []core.Option{core.Wait(3 * time.Second), second}, 3 * time.Second},
			"a later one":       {nil, []core.Option{second, core.Wait(4 * time.Second)}, 4 * time.Second},
			"an earlier NoWait": {nil, []core.Option{core.NoWait(), second}, 0},
			"two":               {nil, []core.Option{second, adapter.Fallback(core.Wait(time.Minute))}, time.Second},
		} {
			l := s.locker(test.ofNew...)
			holder := take(t, background, l, "k")
			o := <-start(background, l, "k", test.ofCall...)
			wantBusy(t, o.err)
			wantTime(t, name+": gave up", o.took, test.want, test.want)
			synctest.Wait() // it has left the queue
			unlock(t, holder)
		}
		// Other options have no effect in it.
		k := take(t, background, s.locker(), "k", second)
		if got := s.TTL("lock:k"); got != lease {
			t.Errorf("TTL %v", got)
		}
		ctx, cancel := context.WithCancel(background)
		l := s.locker(core.MaxWaiters(2))
		one := start(ctx, l, "k")
		two := start(ctx, l, "k", adapter.Fallback(core.MaxWaiters(1)))
		waits(t, two)
		wantBusy(t, (<-start(ctx, l, "k")).err)
		cancel()
		<-one
		<-two
		unlock(t, k)
	})
}

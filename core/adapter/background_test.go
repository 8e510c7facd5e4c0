package adapter_test

import (
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestReleasesInBackground(t *testing.T) {
	own, all := locktest.New(t), locktest.New(t, core.BackgroundRelease())
	unready := locktest.New(t, core.BackgroundRelease(), core.NoWait())
	background := core.BackgroundRelease()
	for _, c := range []struct {
		what string
		got  bool
		want bool
	}{
		{"nothing said", adapter.ReleasesInBackground(own), false},
		{"by the call", adapter.ReleasesInBackground(own, background, core.Wait(time.Second)), true},
		{"by New", adapter.ReleasesInBackground(all), true},
		{"by New, with NoWait", adapter.ReleasesInBackground(unready), false},
		{"by New, the call waits", adapter.ReleasesInBackground(unready, core.Wait(time.Second)), true},
		{"NoWait", adapter.ReleasesInBackground(all, core.NoWait()), false},
		{"KeepFor", adapter.ReleasesInBackground(own, background, core.KeepFor(time.Second)), false},
		{"a bad option", adapter.ReleasesInBackground(all, core.Lease(-1)), false},
		{"no Locker", adapter.ReleasesInBackground(nil), false},
		{"no Locker, by the call", adapter.ReleasesInBackground(nil, background), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", c.what, c.got)
		}
	}
}

// What an adapter can tell at set-up.
func ExampleReleasesInBackground() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	locker, err := core.New(client, core.BackgroundRelease())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(adapter.ReleasesInBackground(locker))
	fmt.Println(adapter.ReleasesInBackground(locker, core.NoWait()))
	// Output:
	// true
	// false
}

package byurl

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What a lock wants of a client, unless the URL wants something else.
func TestClientsOfOpen(t *testing.T) {
	type options struct {
		bounded bool
		dial    time.Duration
		dials   int
	}
	for url, want := range map[string]options{
		"redis://localhost":                  {true, time.Second, 1},
		"redis://localhost?dial_timeout=3s":  {true, 3 * time.Second, 1},
		"unix:///tmp/redis.sock":             {true, time.Second, 1},
		"redis://localhost?addr=localhost:1": {true, time.Second, 1},
		"redis://localhost?addr=localhost:1&dial_timeout=3s&dialer_retries=7":    {true, 3 * time.Second, 7},
		"redis://localhost?master_name=m":                                        {true, time.Second, 1},
		"redis://localhost?master_name=m&dial_timeout=3s&dialer_retries=7":       {true, 3 * time.Second, 7},
		"redis://localhost?master_name=m&context_timeout_enabled=false&addr=a:1": {true, time.Second, 1},
	} {
		_, client, err := ClientOf(url, time.Second)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		var got options
		switch c := client.(type) {
		case *redis.Client:
			o := c.Options()
			got = options{o.ContextTimeoutEnabled, o.DialTimeout, o.DialerRetries}
		case *redis.ClusterClient:
			o := c.Options()
			got = options{o.ContextTimeoutEnabled, o.DialTimeout, o.DialerRetries}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", url, got, want)
		}
		_ = client.Close()
	}
}

// Not even one at a host where it does not belong.
func TestErrorsOfURLsHaveNoPassword(t *testing.T) {
	for _, url := range []string{
		"redis://localhost?addr=:s3cret@localhost:1",
		"redis://:s3cret@localhost?addr=user:s3cret@localhost:1",
		"redis://localhost?master_name=m&addr=:s3cret@localhost:1",
		"redis://:12?addr=s3cret@localhost:1",
		"redis://user:s3cret:localhost:6379",
		"redis://:s3cret:localhost:6379",
		"redis://:s3cret:6379",
		"redis://s3cret:localhost",
		"redis://localhost?addr=user:s3cret:localhost:6379",
		"redis://localhost?master_name=m&addr=user:s3cret:localhost:6379",
		"redis://localhost/s3cret",
		"redis://localhost/0/s3cret",
		"redis://localhost?master_name=m&addr=a:1&db=s3cret",
		"redis://localhost?db=s3cret",
		"redis://localhost?dial_timeout=s3cret",
		"redis://localhost?addr=a:1&pool_size=s3cret",
		"redis://localhost?context_timeout_enabled=s3cret",
		"redis://localhost?s3cret=1",
		"redis://localhost/0?db=1&s3cret",
		"s3cret://localhost",
	} {
		_, client, err := ClientOf(url, time.Second)
		if err == nil {
			_ = client.Close()
			t.Errorf("%s is taken", url)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Error(err)
		} else if len(err.Error()) < 20 {
			t.Errorf("%s: it says too little: %v", url, err)
		}
	}
	for _, url := range []string{"redis://[::1]:6379", "redis://[::1]", "redis://a?addr=[::1]:1&addr=b:2"} {
		_, client, err := ClientOf(url, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
	}
}

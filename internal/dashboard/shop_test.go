package dashboard

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// shop is examples/nethttp, a process of its own.
type shop struct {
	t   *testing.T
	url string
}

// The leases are short, so that it does not take long to lose one. A failed renewal and
// a release that is not confirmed take a third of a lease to be noticed.
var shopFlags = []string{"-lease", "6s", "-max-hold", "9s"}

var serving = regexp.MustCompile(`^Serving at http://(\S+) `)

func startShop(t *testing.T, redisAddr string) *shop {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "shop")
	build := exec.Command("go", "build", "-o", binary, "./examples/nethttp")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := launch(t, serving, binary, append(shopFlags, "-redis", redisAddr, "-serve", "127.0.0.1:0")...)
	return &shop{t: t, url: "http://" + p.addr}
}

// post begins a request, and returns where its status will arrive: 0 if there is none.
func (s *shop) post(ctx context.Context, path string) <-chan int {
	status := make(chan int, 1)
	go func() {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, nil)
		if err != nil {
			s.t.Error(err)
			status <- 0
			return
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			status <- 0
			return
		}
		_ = response.Body.Close()
		status <- response.StatusCode
	}()
	return status
}

// want sends a request and waits for its answer.
func (s *shop) want(status int, path string) {
	s.t.Helper()
	if got := <-s.post(s.t.Context(), path); got != status {
		s.t.Errorf("%s is answered %d, want %d", path, got, status)
	}
}

// read returns the sum of a metric's series, as the program shows it now.
func (s *shop) read(metric string) float64 {
	response, err := http.Get(s.url + "/metrics")
	if err != nil {
		s.t.Error(err)
		return 0
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	sum := 0.0
	for _, line := range regexp.MustCompile(`(?m)^`+metric+` (\S+)$`).FindAllSubmatch(text, -1) {
		value, err := strconv.ParseFloat(string(line[1]), 64)
		if err != nil {
			s.t.Error(err)
		}
		sum += value
	}
	return sum
}

// await returns when a metric is at least so much. The metric is a regular expression
// for its name and labels.
func (s *shop) await(atLeast float64, metric string) {
	s.t.Helper()
	redistest.Await(s.t, patience, fmt.Sprintf("%s to be %v", metric, atLeast), func() bool {
		return s.read(metric) >= atLeast
	})
}

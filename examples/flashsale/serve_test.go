//go:build go1.25

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newTestPage(t *testing.T, s *show) string {
	t.Helper()
	server := httptest.NewServer(newPage(s))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL
}

func post(t *testing.T, path string, form url.Values, header ...string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestButtons(t *testing.T) {
	s := newTestShow(t, time.Minute)
	page := newTestPage(t, s)
	for _, buyers := range []string{"", "0", "-5", "abc", "1e9", "1000000000", "1000001", "1.5", " 5", "99999999999999999999"} {
		status, answer := post(t, page+"/start", url.Values{"buyers": {buyers}})
		if status != http.StatusBadRequest || answer != "buyers must be a whole number from 1 to 1000000\n" {
			t.Errorf("%.30q buyers: %d %s", buyers, status, answer)
		}
	}
	long := url.Values{"buyers": {"5"}, "more": {strings.Repeat("1", 2048)}}
	if status, _ := post(t, page+"/start", long); status != http.StatusBadRequest {
		t.Errorf("a long body: %d", status)
	}
	million := url.Values{"buyers": {"1000000"}}
	if status, _ := post(t, page+"/start", million, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("started by another site: %d", status)
	}
	if state := s.snapshot().State; state != "ready" {
		t.Fatalf("the sale is %s", state)
	}
	if status, answer := post(t, page+"/stop", nil); status != http.StatusNoContent {
		t.Errorf("stop before the start: %d %s", status, answer)
	}
	if status, answer := post(t, page+"/start", million); status != http.StatusNoContent {
		t.Errorf("start: %d %s", status, answer)
	}
	if now := s.snapshot(); now.State != "running" || now.Buyers != 1_000_000 {
		t.Errorf("%d buyers, the sale is %s", now.Buyers, now.State)
	}
	await(t, "the sale to go on", func() bool { return s.snapshot().Sides[1].Sold > 5 })
	if status, _ := post(t, page+"/start", million); status != http.StatusConflict {
		t.Errorf("started twice: %d", status)
	}
	if status, _ := post(t, page+"/stop", nil); status != http.StatusNoContent || s.snapshot().State != "stopped" {
		t.Errorf("stop: %d, the sale is %s", status, s.snapshot().State)
	}
}

func TestStartWithoutRedis(t *testing.T) {
	s := newTestShow(t, time.Minute)
	page := newTestPage(t, s)
	s.client.Close()
	status, answer := post(t, page+"/start", url.Values{"buyers": {"5"}})
	if status != http.StatusServiceUnavailable || answer != "Redis does not answer\n" {
		t.Errorf("%d %s", status, answer)
	}
}

// view opens the stream. The function returned reads the next snapshot.
func view(t *testing.T, page string) (next func() snapshot, leave func()) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(); response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("%s, %s", response.Status, kind)
	}
	lines := bufio.NewScanner(response.Body)
	return func() snapshot {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the stream ended: ", lines.Err())
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var got struct {
			snapshot
			Sides []struct {
				sideSnapshot
				Orders [][3]int64 `json:"orders"`
			} `json:"sides"`
		}
		if err := json.Unmarshal([]byte(data), &got); err != nil || !ok || len(got.Sides) != 2 {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		for _, side := range got.Sides {
			got.snapshot.Sides = append(got.snapshot.Sides, side.sideSnapshot)
		}
		if lines.Scan(); lines.Text() != "" {
			t.Fatalf("no empty line ends the event, but %q", lines.Text())
		}
		return got.snapshot
	}, leave
}

func TestStreamShowsTheSale(t *testing.T) {
	s := newTestShow(t, 500*time.Millisecond)
	next, _ := view(t, newTestPage(t, s))
	if first := next(); first.State != "ready" || first.Stock != piecesInTest || first.Sides[0].Left != piecesInTest {
		t.Errorf("first %+v", first)
	}
	begin(t, s, 60)
	running, last := 0, 0
	for now := next(); now.State != "over"; now = next() {
		running++
		if sold := now.Sides[1].Sold; sold < last || sold > piecesInTest {
			t.Errorf("%d sold after %d", sold, last)
		}
		last = now.Sides[1].Sold
	}
	if running == 0 {
		t.Error("no snapshot of the running sale")
	}
}

func TestViewersAreBounded(t *testing.T) {
	page := newTestPage(t, newTestShow(t, time.Minute))
	var leave func()
	for range maxViewers {
		_, leave = view(t, page)
	}
	full := func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusServiceUnavailable
	}
	if !full() {
		t.Fatal("one viewer too many is let in")
	}
	leave()
	await(t, "the place of one who left", func() bool { return !full() })
}

// screen is a viewer's end of the stream.
type screen struct {
	*httptest.ResponseRecorder
	write    func() error // nil: takes everything
	deadline time.Time
}

func (s *screen) Write(data []byte) (int, error) {
	if s.write != nil {
		return 0, s.write()
	}
	return s.ResponseRecorder.Write(data)
}

func (s *screen) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }

// watch serves a viewer until ctx is done; it closes gone then.
func watch(ctx context.Context, s *show, viewer *screen) (gone chan struct{}) {
	viewer.ResponseRecorder = httptest.NewRecorder()
	gone = make(chan struct{})
	go func() {
		defer close(gone)
		s.stream(make(chan struct{}, 1))(viewer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil))
	}()
	return gone
}

func TestStuckViewerHoldsNothingUp(t *testing.T) {
	s := newTestShow(t, 50*time.Millisecond)
	writes, release := make(chan struct{}), make(chan struct{})
	viewer := &screen{write: func() error { close(writes); <-release; return errors.New("too late") }}
	gone := watch(t.Context(), s, viewer)
	<-writes
	if d := time.Until(viewer.deadline); d <= 0 || d > 10*time.Second {
		t.Errorf("a write has %v", d)
	}
	begin(t, s, 50)
	if end := awaitState(t, s, "over"); end.Sides[1].Sold != piecesInTest {
		t.Errorf("%d sold", end.Sides[1].Sold)
	}
	close(release)
	<-gone
}

func TestNothingIsSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		viewer := &screen{}
		gone := watch(ctx, &show{stock: 1}, viewer)
		time.Sleep(time.Minute)
		leave()
		<-gone
		if n := strings.Count(viewer.Body.String(), "data: "); n != 1 {
			t.Errorf("%d snapshots of a sale that has not begun", n)
		}
	})
}

func TestPageNeedsNothingElse(t *testing.T) {
	response := httptest.NewRecorder()
	newPage(&show{}).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/", nil))
	if response.Code != http.StatusOK || response.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d %v", response.Code, response.Header())
	}
	if i := strings.Index(response.Body.String(), "://"); i >= 0 {
		t.Errorf("it names another server: %s", response.Body.String()[max(0, i-60):i+20])
	}
	if !strings.Contains(response.Body.String(), fmt.Sprintf(`max="%d"`, maxBuyers)) {
		t.Error("the field has another maximum than the server")
	}
}

//go:build go1.25

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/examples/internal/start"
)

const (
	interval   = 100 * time.Millisecond // between two looks at the sale
	maxBuyers  = 1_000_000
	maxViewers = 64
)

//go:embed page.html
var pageHTML []byte

// servePage shows the sale in the browser until ctx is done.
func servePage(ctx context.Context, client *redis.Client) error {
	if *buyers > maxBuyers {
		return fmt.Errorf("-buyers must be at most %d", maxBuyers)
	}
	if err := client.Set(ctx, stockKey("flash"), *stock, time.Hour).Err(); err != nil {
		return err
	}
	s, err := newShow(client, *stock, 8*time.Second, 30*time.Millisecond)
	if err != nil {
		return err
	}
	defer s.close()
	listener, url, err := start.Listen(*serve)
	if err != nil {
		return err
	}
	handler := newPage(s)
	handler.Handle("/items/", newShop(client))
	handler.Handle("/unsafe/items/", newShop(client))
	fmt.Printf("The sale, to watch: %s (until interrupted)\n", url)
	fmt.Printf("To buy by hand: curl -X POST %s/items/flash/buy\n", url)
	return start.Serve(ctx, listener, handler)
}

// newPage serves the page, the stream that keeps it up to date, and its buttons.
func newPage(s *show) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(pageHTML)
	})
	mux.HandleFunc("GET /events", s.stream(make(chan struct{}, maxViewers)))

	// Other sites must not press the buttons in the user's browser.
	same := http.NewCrossOriginProtection()
	mux.Handle("POST /start", same.Handler(http.HandlerFunc(s.handleStart)))
	mux.Handle("POST /stop", same.Handler(http.HandlerFunc(s.handleStop)))
	return mux
}

func (s *show) handleStart(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	buyers, err := strconv.Atoi(r.PostFormValue("buyers"))
	if err != nil || buyers < 1 || buyers > maxBuyers {
		http.Error(w, fmt.Sprintf("buyers must be a whole number from 1 to %d", maxBuyers), http.StatusBadRequest)
		return
	}
	switch err := s.start(r.Context(), buyers); {
	case errors.Is(err, errRunning):
		http.Error(w, "a sale is running already", http.StatusConflict)
	case err != nil:
		http.Error(w, "Redis does not answer", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *show) handleStop(w http.ResponseWriter, _ *http.Request) {
	s.stop()
	w.WriteHeader(http.StatusNoContent)
}

// stream sends a snapshot whenever there is something new, at most one for each
// interval. Viewers fetch: the sale knows nothing of them, so none can hold it up.
func (s *show) stream(viewers chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case viewers <- struct{}{}:
			defer func() { <-viewers }()
		default:
			http.Error(w, "too many viewers", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		tick := time.NewTicker(interval)
		defer tick.Stop()
		var last []byte
		for {
			now, err := json.Marshal(s.snapshot())
			if err != nil {
				return
			}
			if !bytes.Equal(now, last) && send(w, now) != nil {
				return
			}
			last = now
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// send gives up on a viewer who takes nothing for a while.
func send(w http.ResponseWriter, snapshot []byte) error {
	stream := http.NewResponseController(w)
	if err := stream.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "data: %s\n\n", snapshot); err != nil {
		return err
	}
	return stream.Flush()
}

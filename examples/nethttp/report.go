//go:build go1.25

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/httplock"
)

// report has two halves. Who rebuilds it writes one after the other, 200 ms apart, and who reads it
// reads one after the other, 100 ms apart.
type report struct{ first, second atomic.Int64 }

func (p *report) read(w http.ResponseWriter, _ *http.Request) {
	first := p.first.Load()
	time.Sleep(100 * time.Millisecond)
	if second := p.second.Load(); first != second {
		fmt.Fprintf(w, "half of version %d and half of version %d\n", first, second)
		return
	}
	fmt.Fprintf(w, "version %d\n", first)
}

func (p *report) rebuild(w http.ResponseWriter, _ *http.Request) {
	version := p.first.Add(1)
	time.Sleep(200 * time.Millisecond)
	p.second.Store(version)
	fmt.Fprintf(w, "rebuilt: version %d\n", version)
}

// handle adds the report's routes, behind a guard.
func (p *report) handle(mux *http.ServeMux, guard func(http.Handler) http.Handler) {
	mux.Handle("GET /reports/{reportID}", guard(http.HandlerFunc(p.read)))
	mux.Handle("PUT /reports/{reportID}", guard(http.HandlerFunc(p.rebuild)))
}

// sharedReads has requests by GET share the report's lock, and those by PUT have it alone.
func sharedReads() func(http.Handler) http.Handler {
	return httplock.New(httplock.Config{Param: "reportID", Shared: httplock.SafeMethods})
}

// compareReports shows eight readers and one who rebuilds, without a lock, with one for each
// request alone, and with one that readers share.
func compareReports(ctx context.Context, out io.Writer) {
	fmt.Fprintln(out, "\n8 read a report, 1 rebuilds it:")
	for _, c := range []struct {
		name  string
		guard func(http.Handler) http.Handler
	}{
		{"without a lock", func(next http.Handler) http.Handler { return next }},
		{"each one alone", httplock.ByParam("reportID")},
		{"Shared: SafeMethods", sharedReads()},
	} {
		mux, began := http.NewServeMux(), time.Now()
		new(report).handle(mux, c.guard)
		answers := [9]*httptest.ResponseRecorder{}
		var clients sync.WaitGroup
		for i := range answers {
			method := http.MethodGet
			if i == 4 { // it comes in between
				method = http.MethodPut
			}
			clients.Go(func() {
				answers[i] = httptest.NewRecorder()
				mux.ServeHTTP(answers[i], httptest.NewRequestWithContext(ctx, method, "/reports/7", nil))
			})
			time.Sleep(10 * time.Millisecond)
		}
		clients.Wait()
		got := map[string]int{}
		for _, a := range answers {
			got[a.Body.String()]++
		}
		fmt.Fprintf(out, "%-20s after %4d ms:", c.name, time.Since(began).Milliseconds())
		fmt.Fprintf(out, "  %d read version 0, %d version 1, %d half of each\n",
			got["version 0\n"], got["version 1\n"], got["half of version 0 and half of version 1\n"]+got["half of version 1 and half of version 0\n"])
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// asking is the text of a client's n-th request.
type asking func(client, n int) []byte

// requests has clients ask a server for a round.
func (b *bench) requests(ctx context.Context, handler http.Handler, connections int, text asking) (figures, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	var phase atomic.Int32
	var clients sync.WaitGroup
	taken := make([][]time.Duration, connections)
	errs := make([]error, connections)
	for i := range connections {
		clients.Go(func() { taken[i], errs[i] = ask(listener.Addr().String(), i, text, &phase) })
	}
	sleep(ctx, b.warmUp())
	start := time.Now()
	before := usageNow()
	phase.Store(measuring)
	sleep(ctx, b.roundTime)
	phase.Store(over)
	elapsed, after := time.Since(start), usageNow()
	clients.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(taken...)))
	requests := float64(len(all))
	return figures{
		requestsPerSecond: requests / elapsed.Seconds(),
		requestCPU:        float64((after.cpu - before.cpu).Microseconds()) / requests,
		requestAllocs:     float64(after.mallocs-before.mallocs) / requests,
		requestBytes:      float64(after.bytes-before.bytes) / requests,
		requestP50:        milliseconds(percentile(all, 50)),
		requestP99:        milliseconds(percentile(all, 99)),
	}, errors.Join(append(errs, ctx.Err(), server.Close())...)
}

// ask is one client. It shares the processor with the server, so it does no
// more than it must: the whole request in one write, and of the response the
// status and the length.
func ask(addr string, client int, text asking, phase *atomic.Int32) (taken []time.Duration, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := 0; phase.Load() != over; n++ {
		request := text(client, n)
		start := time.Now()
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		if err := readResponse(in); err != nil {
			return nil, err
		}
		if phase.Load() == measuring {
			taken = append(taken, time.Since(start))
		}
	}
	return taken, nil
}

func readResponse(in *bufio.Reader) error {
	status, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(status), "HTTP/1.1 200 ") {
		return fmt.Errorf("the server answered %q", status)
	}
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err = in.Discard(length)
			return err
		}
		if value, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
}

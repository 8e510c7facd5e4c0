package faults

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Three processes send one request. What one has answered, and Redis does not know yet, is no
// reason for the next attempt before the lease is over; and no answer afterwards.
func TestAnswerComesTooLate(t *testing.T) {
	server := redistest.Start(t)
	var workers []*process
	var proxies []*redistest.Proxy
	for i := range 3 {
		proxies = append(proxies, server.Proxy(t))
		redis := address{Kind: "single", Addrs: []string{proxies[i].Addr()}}
		workers = append(workers, startProcess(t, setup{Worker: i, Redis: redis, Members: 1, Timeout: 5 * time.Second}, newHistory(), newStore()))
	}
	const hour = time.Hour
	send := func(i int, key string, lease, wait time.Duration, want string) {
		t.Helper()
		workers[i].send(order{Do: "send", Key: key, Lease: lease, Wait: wait})
		workers[i].await(t, want)
	}
	answer := func(i, status int, want string) {
		t.Helper()
		workers[i].send(order{Do: "answer", Status: status})
		workers[i].await(t, want)
	}
	const (
		paid = http.StatusCreated
		down = http.StatusServiceUnavailable
	)

	// One that has failed leaves nothing behind.
	for range 2 {
		send(0, "a", hour, 0, "attempt 1")
		send(1, "a", hour, 0, "409")
		answer(0, down, "503 of worker 0")
	}

	// Two answers, of which the first is late.
	digests, err := redistest.Digests("release")
	if err != nil {
		t.Fatal(err)
	}
	isRelease := redistest.Script(digests...)
	late := proxies[0].HoldRequest(func(request []string) bool {
		return isRelease(request) && strings.Contains(request[len(request)-1], `"status":201`)
	}, redistest.Always())
	send(0, "a", hour, 0, "attempt 1")
	answer(0, paid, "201 of worker 0")
	send(1, "a", hour, 0, "409")
	endLeases(t, server)
	send(1, "a", hour, 0, "attempt 2")
	late.Release()
	send(2, "a", hour, 0, "409")
	answer(1, paid, "201 of worker 1")
	for i := range workers {
		send(i, "a", hour, 0, "201 of worker 1, again")
	}

	// The attempts of a process that was killed, and of one that was stopped.
	send(0, "b", time.Second, 0, "attempt 1")
	workers[0].kill()
	send(1, "b", time.Second, hour, "attempt 2")
	workers[1].stop(t)
	send(2, "b", hour, hour, "attempt 3")
	workers[1].send(order{Do: "answer", Status: paid})
	workers[1].cont(t)
	workers[1].await(t, "201 of worker 1")
	answer(2, down, "503 of worker 2")
	send(2, "b", hour, 0, "attempt 4") // the first two may still have done the work
	answer(2, paid, "201 of worker 2")
	for i := range workers[1:] {
		send(1+i, "b", hour, 0, "201 of worker 2, again")
	}
	for _, p := range workers[1:] {
		if leaked := p.leave(t); leaked != "" {
			t.Error(leaked)
		}
	}
}

// endLeases ends those of all attempts.
func endLeases(t *testing.T, server *redistest.Server) {
	client := admin(server)
	defer client.Close()
	for _, key := range client.Keys(background, lockName("idempotent:*")).Val() {
		for _, field := range client.HKeys(background, key).Val() {
			if strings.HasPrefix(field, holderField) {
				if err := client.HDel(background, key, field).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

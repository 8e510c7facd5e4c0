package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

const held, waiting = `latchkey_lock_held\{form="exclusive",name="orderID"\}`, `latchkey_lock_waiting\{form="exclusive",name="orderID"\}`

// quiet is a service that nobody has trouble with.
func (s *shop) quiet() {
	s.want(http.StatusOK, "/orders/1/pay")
	s.want(http.StatusOK, "/orders/1/receipt")
}

// crowd sends more requests for one order than may wait for it, and more than can be
// served within the 3 s of a wait. It returns when all are answered.
func (s *shop) crowd(w *watcher) {
	const size = 300 // 256 may wait
	var answers []<-chan int
	for range size {
		answers = append(answers, s.post(s.t.Context(), "/orders/42/pay"))
	}
	w.await("locks that are held and waited for",
		"sum(latchkey_lock_held) > 0 and sum(latchkey_lock_waiting) > 0")
	count := map[int]int{}
	for _, answer := range answers {
		count[<-answer]++
	}
	if count[http.StatusOK] == 0 || count[http.StatusConflict] == 0 || count[http.StatusOK]+count[http.StatusConflict] != size {
		s.t.Errorf("the crowd is answered %v, want some 200 and the rest 409", count)
	}
}

// clicks sends a request once more within its dedup window.
func (s *shop) clicks() {
	s.want(http.StatusOK, "/orders/2/receipt")
	s.want(http.StatusConflict, "/orders/2/receipt")
}

// badKey sends a request whose key is too long.
func (s *shop) badKey() {
	s.want(http.StatusBadRequest, "/orders/"+strings.Repeat("1", 2000)+"/pay")
}

// leave is a client who does not wait for the answer.
func (s *shop) leave() {
	first := s.post(s.t.Context(), "/orders/3/pay?takes=2s")
	s.await(1, held)
	ctx, leave := context.WithCancel(s.t.Context())
	defer leave()
	second := s.post(ctx, "/orders/3/pay")
	s.await(1, waiting)
	leave()
	<-second
	<-first
}

// hang is a handler that takes longer than MaxHold permits. Its status is to be waited for.
func (s *shop) hang() <-chan int {
	return s.post(s.t.Context(), "/orders/4/pay?takes=50s")
}

// deleteHeld has somebody delete a lock in Redis while it is held.
func (s *shop) deleteHeld(server *redistest.Server) {
	lost := s.read(`latchkey_lock_losses_total\{.*reason="deleted"\}`)
	answer := s.post(s.t.Context(), "/orders/5/pay?takes=50s")
	client := server.Client(s.t)
	redistest.Await(s.t, patience, "a lock to delete", func() bool {
		n, err := client.Del(s.t.Context(), "lock:orderID=5").Result()
		return err == nil && n == 1
	})
	s.await(lost+1, `latchkey_lock_losses_total\{.*reason="deleted"\}`)
	if status := <-answer; status == http.StatusOK {
		s.t.Error("the handler whose lock was deleted succeeds")
	}
}

// outage stops Redis under a lock that is renewed and waited for, one that is released, and
// requests that ask for one, until all of them have noticed.
func (s *shop) outage(server *redistest.Server) {
	before := s.read(held)
	answers := []<-chan int{
		s.post(s.t.Context(), "/orders/6/pay?takes=50s"),
		s.post(s.t.Context(), "/orders/7/pay?takes=1s"),
	}
	s.await(before+2, held)
	answers = append(answers, s.post(s.t.Context(), "/orders/6/pay")) // who waits listens to Redis
	s.await(1, waiting)
	server.Stop(s.t)
	const refused = 50
	for i := range refused {
		answers = append(answers, s.post(s.t.Context(), fmt.Sprintf("/orders/%d/pay", 100+i)))
	}
	for _, metric := range []string{
		`latchkey_lock_renewal_failures_total\{.*\}`,
		`latchkey_lock_unconfirmed_releases_total\{.*\}`,
		`latchkey_lock_losses_total\{.*reason="expired"\}`,
		`latchkey_unheard_total`,
	} {
		s.await(1, metric)
	}
	s.await(refused, `latchkey_refusals_total\{.*status="503"\}`)
	server.Cont(s.t)
	for _, answer := range answers {
		<-answer
	}
}

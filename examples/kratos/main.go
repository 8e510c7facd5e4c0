// Kratos guards routes of a Kratos HTTP server: its filters have the form of httplock's middleware.
//
//	cd examples/kratos && go run .
//
// Kratos finds path parameters by gorilla's mux, which does not tell net/http of them: so a key function asks mux, in
// place of ByParam. It needs a filter of the route, as here, or of srv.Route. A filter of the whole server runs before the
// route is known: use ByHeader or ByQuery there, which fit routes of generated code, too. Generated code takes a field by its JSON name and
// by that in the proto file: where a json_name makes these two differ in more than "_", ByQuery sees one of them only, and a client could give
// the other one. Use a key function that refuses it.
//
// Kratos ends a request's context after the Timeout of the server, one second if it does not say so: a request that waits for its
// lock is refused then, and a handler that has waited has the rest of that time.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	nethttp "net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-kratos/kratos/v2/transport/http"
	"github.com/gorilla/mux"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// orderID is what ByParam("orderID") is elsewhere.
var orderID = keyfunc.Named("orderID", func(r keyfunc.Request) (string, error) {
	return mux.Vars(r.HTTP())["orderID"], nil
})

// newServer returns a server whose routes lock by an order, or by a header.
func newServer(locker *core.Locker, pay func(ctx context.Context)) *http.Server {
	locks := httplock.With(locker, core.Wait(200*time.Millisecond))
	handle := func(c http.Context) error {
		pay(c) // c is the request's context, and has the lock
		return c.String(nethttp.StatusOK, "paid")
	}
	server := http.NewServer(http.Timeout(3 * time.Second))
	routes := server.Route("/")
	routes.POST("/orders/{orderID}/pay", handle, locks.By(orderID))
	routes.POST("/carts/buy", handle, locks.ByHeader("X-Cart"))
	return server
}

func main() {
	embedded, err := miniredis.Run() // yours is a real one
	if err != nil {
		log.Fatal(err)
	}
	defer embedded.Close()
	client := redis.NewClient(&redis.Options{Addr: embedded.Addr()})
	defer client.Close()
	locker, err := core.New(client)
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	begun, finish := make(chan string), make(chan bool)
	server := httptest.NewServer(newServer(locker, func(ctx context.Context) {
		lock, _ := core.FromContext(ctx)
		begun <- lock.Key()
		<-finish
	}))
	defer server.Close()
	for _, path := range []string{"/orders/42/pay", "/carts/buy"} {
		first := make(chan string)
		go func() { first <- post(server.URL + path) }()
		fmt.Println("under the lock", <-begun)
		fmt.Println("meanwhile:", post(server.URL+path))
		finish <- true
		fmt.Println("the first:", <-first)
	}
}

// post returns the answer to a request.
func post(url string) string {
	request, err := nethttp.NewRequest(nethttp.MethodPost, url, nil)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("X-Cart", "7")
	response, err := nethttp.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	if response.StatusCode != nethttp.StatusOK {
		return response.Status
	}
	return string(body)
}

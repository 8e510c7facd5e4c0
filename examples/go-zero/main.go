// Go-zero guards routes of a go-zero REST server: rest.ToMiddleware takes httplock's middleware as it is.
//
//	cd examples/go-zero && go run .
//
// go-zero has its own path parameters, which net/http is not told of: so a key function asks pathvar, in place of ByParam.
// In an api file, that middleware is one of "@server(middleware: …)".
//
// go-zero answers 503 when the Timeout of its configuration is over, three seconds if it does not say so,
// also while a request waits for its lock: give core.Wait less. The lock is kept until the handler really returns.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/zeromicro/go-zero/core/conf"
	"github.com/zeromicro/go-zero/core/proc"
	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const configuration = `
Name: orders
Host: 127.0.0.1
Port: 0
Log: {Level: severe, Stat: false}
`

// orderID is what ByParam("orderID") is elsewhere.
var orderID = keyfunc.Named("orderID", func(r keyfunc.Request) (string, error) {
	return pathvar.Vars(r.HTTP())["orderID"], nil
})

// newServer returns a server whose routes lock by an order, or by a header.
func newServer(locker *core.Locker, pay func(ctx context.Context)) *rest.Server {
	locks := httplock.With(locker, core.Wait(200*time.Millisecond))
	handle := func(w http.ResponseWriter, r *http.Request) {
		pay(r.Context()) // which has the lock
		fmt.Fprint(w, "paid")
	}
	var config rest.RestConf
	if err := conf.LoadFromYamlBytes([]byte(configuration), &config); err != nil {
		log.Fatal(err)
	}
	server := rest.MustNewServer(config)
	order := rest.Route{Method: http.MethodPost, Path: "/orders/:orderID/pay", Handler: handle}
	cart := rest.Route{Method: http.MethodPost, Path: "/carts/buy", Handler: handle}
	server.AddRoutes(rest.WithMiddleware(rest.ToMiddleware(locks.By(orderID)), order))
	server.AddRoutes(rest.WithMiddleware(rest.ToMiddleware(locks.ByHeader("X-Cart")), cart))
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
	server := newServer(locker, func(ctx context.Context) {
		lock, _ := core.FromContext(ctx)
		begun <- lock.Key()
		<-finish
	})
	address, stopped := make(chan string, 1), make(chan bool)
	go func() {
		defer close(stopped)
		server.StartWithOpts(func(s *http.Server) {
			s.BaseContext = func(l net.Listener) context.Context {
				address <- l.Addr().String()
				return context.Background()
			}
		})
	}()
	url := "http://" + <-address
	for _, path := range []string{"/orders/42/pay", "/carts/buy"} {
		first := make(chan string)
		go func() { first <- post(url + path) }()
		fmt.Println("under the lock", <-begun)
		fmt.Println("meanwhile:", post(url+path))
		finish <- true
		fmt.Println("the first:", <-first)
	}
	proc.Shutdown()
	<-stopped
}

// post returns the answer to a request.
func post(url string) string {
	request, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("X-Cart", "7")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return string(body)
}

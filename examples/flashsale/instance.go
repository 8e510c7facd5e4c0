package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// instance is one server of the shop that the page shows. As a process of its own
// would, it has connections to Redis and a Locker that no other instance shares.
type instance struct {
	url    string
	client *redis.Client
	locker *core.Locker
	server *http.Server
}

func startInstance(s *show, redisAddr string, number int) (*instance, error) {
	client := redis.NewClient(&redis.Options{Addr: redisAddr, ContextTimeoutEnabled: true})
	locker, err := core.New(client)
	if err != nil {
		client.Close()
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		client.Close()
		return nil, err
	}
	i := &instance{
		url:    "http://" + listener.Addr().String(),
		client: client,
		locker: locker,
		server: &http.Server{Handler: newWatchedShop(s, client, locker, number), ReadHeaderTimeout: 5 * time.Second},
	}
	go i.server.Serve(listener)
	return i, nil
}

// newWatchedShop is the shop of newShop with eyes in it.
func newWatchedShop(s *show, client *redis.Client, locker *core.Locker, number int) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.ContextWithFallback = true // calls with c end when the lock is lost
	router.Use(s.seeVisit)
	router.POST("/unsafe/items/:sku/buy", s.seeOrder(number), buy(client, s.work))

	// What ginlock.ByParam("sku") does, with the Locker of this instance.
	router.Use(ginlock.New(ginlock.Config{
		Locker:  locker,
		Key:     keyfunc.Param("sku"),
		Options: []core.Option{core.Wait(time.Minute), core.MaxWaiters(shopHolds)},
	}))
	router.POST("/items/:sku/buy", s.seeOrder(number), buy(client, s.work))
	return router
}

// close ends the instance as a service should: no more requests, then its locks
// are given back, then the connections go.
func (i *instance) close() {
	i.server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	i.locker.Close(ctx)
	i.client.Close()
}

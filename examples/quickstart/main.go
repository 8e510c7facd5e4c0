package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
)

func main() {
	locker, err := core.New(redis.NewClient(&redis.Options{
		Addr:                  "localhost:6379",
		ContextTimeoutEnabled: true, // keeps deadlines exactly, and spares a goroutine for each lock
	}))
	if err == nil {
		err = locker.Ping(context.Background()) // New does not connect, Ping does
	}
	if err != nil {
		log.Fatal("is Redis running at localhost:6379? ", err)
	}
	core.SetDefault(locker)

	router := gin.Default()
	router.Use(authenticate)               // authenticate first: strangers hold no lock
	router.Use(ginlock.ByParam("orderID")) // one request per order at a time, across every process
	router.POST("/orders/:orderID/pay", func(c *gin.Context) { c.String(200, "paid\n") })

	server := &http.Server{ // with timeouts: a slow client must not hold a lock for long
		Addr: ":8080", Handler: router,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 60 * time.Second,
	}
	log.Print("try: curl -X POST http://localhost:8080/orders/42/pay")
	log.Fatal("is port 8080 taken? ", server.ListenAndServe())
}

func authenticate(c *gin.Context) {} // yours

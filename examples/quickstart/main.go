package main

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
)

func main() {
	locker, err := core.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}))
	if err != nil {
		panic(err)
	}
	core.SetDefault(locker)

	router := gin.Default()
	router.Use(authenticate)               // first who it is: strangers hold no lock
	router.Use(ginlock.ByParam("orderID")) // one request per order at a time, across every process
	router.POST("/orders/:orderID/pay", func(c *gin.Context) { c.String(200, "paid\n") })

	server := &http.Server{ // with time-outs: who sends slowly holds no lock for long
		Addr: ":8080", Handler: router,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 60 * time.Second,
	}
	panic(server.ListenAndServe())
}

func authenticate(c *gin.Context) {} // yours

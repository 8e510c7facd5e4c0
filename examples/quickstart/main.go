package main

import (
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
	router.Use(ginlock.ByParam("orderID")) // one request per order at a time, across every process
	router.POST("/orders/:orderID/pay", func(c *gin.Context) { c.String(200, "paid\n") })
	router.Run(":8080")
}

package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	locker, err := core.Open(ctx, "redis://localhost:6379")
	if err != nil {
		log.Fatal(err) // it says what to do
	}
	core.SetDefault(locker) // or, without globals: locks := ginlock.With(locker, …), then locks.ByParam

	router := gin.Default()
	router.ContextWithFallback = true // calls with c end when the lock is lost
	router.Use(authenticate)          // first: strangers hold no lock
	router.POST("/orders/:orderID/pay", ginlock.ByParam("orderID"), func(c *gin.Context) {
		time.Sleep(2 * time.Second) // the work
		c.String(200, "paid\n")
	})

	server := &http.Server{ // slow clients must not hold locks for long
		Addr: ":8080", Handler: router,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 60 * time.Second,
	}
	go func() {
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			log.Fatal("is port 8080 taken? ", err)
		}
	}()
	log.Print("try twice at once: curl -X POST http://localhost:8080/orders/42/pay")

	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	defer locker.Close(ending) // after the handlers, for which Shutdown waits
	server.Shutdown(ending)
}

func authenticate(c *gin.Context) {} // yours

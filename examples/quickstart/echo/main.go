// Echo is the quick start of the README with echo v4.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	locker, err := core.Open(ctx, "redis://localhost:6379")
	if err != nil {
		log.Fatal(err) // it says what to do
	}
	core.SetDefault(locker) // or, without globals: locks := echolock.With(locker, …), then locks.ByParam

	e := echo.New()
	e.Use(authenticate) // first: strangers hold no lock
	e.POST("/orders/:orderID/pay", func(c echo.Context) error {
		time.Sleep(2 * time.Second) // the work, with c.Request().Context(): it ends when the lock is lost
		return c.String(http.StatusOK, "paid\n")
	}, echolock.ByParam("orderID"))

	// Slow clients must not hold locks for long.
	e.Server.ReadHeaderTimeout, e.Server.ReadTimeout, e.Server.WriteTimeout = 5*time.Second, 15*time.Second, 60*time.Second
	go func() {
		if err := e.Start(":8080"); err != http.ErrServerClosed {
			log.Fatal("is port 8080 taken? ", err)
		}
	}()
	log.Print("try twice at once: curl -X POST http://localhost:8080/orders/42/pay")

	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	defer locker.Close(ending) // after the handlers, for which Shutdown waits
	e.Shutdown(ending)
}

func authenticate(next echo.HandlerFunc) echo.HandlerFunc { return next } // yours

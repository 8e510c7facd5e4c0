package readme

import "strings"

// packages are imported for blocks that are not files.
const packages = `
import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
	"github.com/latchkey-go/latchkey/otellock"
	"github.com/latchkey-go/latchkey/promlock"
)
`

// names are what a reader of a block has already.
const names = `
import (
	"context"
	"database/sql"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

type Order struct {
	ID     int
	UserID string
}

type Receipt struct{ Number string }

var (
	ctx     context.Context
	client  *redis.Client
	locker  *core.Locker
	db      *sql.DB
	timeout time.Duration
	order   Order

	router *gin.Engine
	e      *echo.Echo
	jobs   *asynq.ServeMux
	server *http.Server
	worker *asynq.Server
	queue  *asynq.Client

	authenticate, getOrder, payOrder, buyCart gin.HandlerFunc
	pay, cancelOrder, placeOrder              http.Handler
	payTask                                   asynq.Handler

	orderKey func(Order) (string, error)
	charge   func(context.Context, Order) (Receipt, error)
	ship     func(context.Context, Order) error
	report   func(context.Context) error
	sendNext func(context.Context) error
	sendAll  func(ctx context.Context, token int64) error

	loadRates func(context.Context) (map[string]string, error)

	errBusy  error
	from, to string
	oldLock func(context.Context, string) (release func(), err error)
)
`

// namesFor returns the names for a block: those of several meanings depend on what
// the block is about.
func namesFor(code string) string {
	if strings.Contains(code, "asynq") && !strings.Contains(code, "http") {
		return names + "var mux *asynq.ServeMux\n"
	}
	return names + "var mux *http.ServeMux\n"
}

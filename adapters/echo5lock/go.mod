module github.com/latchkey-go/latchkey/adapters/echo5lock

go 1.25.0

replace github.com/latchkey-go/latchkey => ../..

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/labstack/echo/v5 v5.3.1
	github.com/latchkey-go/latchkey v0.1.0
	github.com/redis/go-redis/v9 v9.22.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/felixge/httpsnoop v1.0.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

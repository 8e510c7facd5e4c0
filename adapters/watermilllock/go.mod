module github.com/latchkey-go/latchkey/adapters/watermilllock

go 1.24.0

replace github.com/latchkey-go/latchkey => ../..

require (
	github.com/ThreeDotsLabs/watermill v1.1.0
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/latchkey-go/latchkey v0.1.0
	github.com/redis/go-redis/v9 v9.22.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/lithammer/shortuuid/v3 v3.0.4 // indirect
	github.com/oklog/ulid v1.3.1 // indirect
	github.com/pkg/errors v0.8.1 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
)

module github.com/latchkey-go/latchkey/adapters/connectlock

go 1.24.0

replace github.com/latchkey-go/latchkey => ../..

require (
	connectrpc.com/connect v1.11.0
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/latchkey-go/latchkey v0.1.0
	github.com/redis/go-redis/v9 v9.22.0
	go.uber.org/goleak v1.3.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20230822172742-b8732ec3820d
	google.golang.org/protobuf v1.35.2
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
)

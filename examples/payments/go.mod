// A module of its own, so that no database's driver reaches who uses latchkey.
module github.com/latchkey-go/latchkey/examples/payments

go 1.25.0

replace github.com/latchkey-go/latchkey => ../..

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/jackc/pgx/v5 v5.13.0
	github.com/latchkey-go/latchkey v0.0.0
	github.com/redis/go-redis/v9 v9.22.0
	modernc.org/sqlite v1.56.0
)

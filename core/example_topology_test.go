package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

func ExampleNewQuorum() {
	var members []redis.UniversalClient
	for range 3 {
		server, err := miniredis.Run()
		if err != nil {
			log.Fatal(err)
		}
		defer server.Close()
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		members = append(members, client)
	}
	locker, err := core.NewQuorum(members)
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	lock, err := locker.Lock(context.Background(), "orderID=42")
	if err != nil {
		log.Fatal(err)
	}
	info, err := locker.Inspect(context.Background(), "orderID=42")
	fmt.Println("held by a majority:", info.Locked, err)
	fmt.Println("released:", lock.Unlock(context.Background()))
	// Output:
	// held by a majority: true <nil>
	// released: <nil>
}

func ExampleReplicas() {
	server, err := miniredis.Run() // has no replica
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	locker, err := core.New(client, core.Replicas(1, 100*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	_, err = locker.Lock(context.Background(), "orderID=42")
	fmt.Println(errors.Is(err, core.ErrUnavailable), core.Detail(err))
	// Output: true core: taking the lock "orderID=42": redis unavailable: 0 of 1 replicas have the lock
}

func ExampleShardedPubSub() {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:7000", "localhost:7001"}})
	defer client.Close()

	locker, err := core.New(client, core.ShardedPubSub())
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	_, err = locker.Lock(context.Background(), "orderID=42", core.ShardedPubSub())
	fmt.Println(err)
	// Output: core: ShardedPubSub is an option of New, not of a single call
}

package core

// ShardedPubSub sends wake-ups by sharded pub/sub
// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub), which needs
// Redis 7: in a cluster a release then costs the nodes of its shard something, and
// not all nodes. Without it a wake-up goes to every node of a cluster. All who wait
// for the same locks must agree about it, or they wake one another by polling only;
// a Redisson client of a cluster does so with shardedSubscriptionMode AUTO or ON.
// Option of [New] and [NewQuorum] only.
func ShardedPubSub() Option {
	return func(s *settings) {
		s.onlyNew("ShardedPubSub", func() { s.sharded = true })
	}
}

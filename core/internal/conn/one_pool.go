package conn

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// pipesByOnePool begins pipelines of go-redis that go by connections of the pool that other commands go by, too. From go-redis 9.23 on
// pipelines have a pool of their own: what either has shown of its connections (that they are silent, or lead to a replica) would say
// nothing of the other's. done must follow.
func pipesByOnePool(client redis.UniversalClient) func() (pipe redis.Pipeliner, done func()) {
	single, ok := client.(*redis.Client)
	// A Conn that opens a connection has no manager of such credentials, and panics.
	if !ok || single.PoolStats().PipelineStats == nil || single.Options().StreamingCredentialsProvider != nil {
		return func() (redis.Pipeliner, func()) { return client.Pipeline(), func() {} }
	}
	// A Conn that opens a connection may change the options, and has no lock in common with its client. It hears of no maintenance.
	quiet := single.WithTimeout(single.Options().ReadTimeout)
	quiet.Options().WriteTimeout = single.Options().WriteTimeout
	if hears := quiet.Options().MaintNotificationsConfig; hears != nil && hears.Mode == maintnotifications.ModeAuto {
		hears.Mode = maintnotifications.ModeDisabled
	}
	return func() (redis.Pipeliner, func()) {
		conn := single.Conn() // which has the hooks of the client
		conn.AddHook(byOnePool{quiet})
		return conn.Pipeline(), func() { _ = conn.Close() }
	}
}

// byOnePool is the last hook of such pipelines.
type byOnePool struct{ client *redis.Client }

func (byOnePool) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (byOnePool) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h byOnePool) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		conn := h.client.Conn()
		defer conn.Close()
		pipe := conn.Pipeline()
		_ = pipe.BatchProcess(ctx, cmds...)
		_, err := pipe.Exec(ctx)
		return err
	}
}

package conn

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// Nodes that have left a cluster are forgotten, unless commands wait for them still.
func TestPipelinesOfNodesThatHaveLeft(t *testing.T) {
	p := idlePipeline(t, Config{})
	node := func() *pipeline { return newNode(t, p.server) }
	waits := node()
	waits.enqueue(&Queued{Command: &Command{}})
	repeats := node()
	repeats.repeat(&Queued{Command: &Command{}})
	for range 10 {
		node()
	}
	want := map[*pipeline]bool{p: true, waits: true, repeats: true, node(): true}
	p.server.pipelines.Range(func(_, kept any) bool {
		if !want[kept.(*pipeline)] {
			t.Error("one is kept that nobody needs")
		}
		delete(want, kept.(*pipeline))
		return true
	})
	if len(want) > 0 {
		t.Errorf("%d are forgotten that somebody needs", len(want))
	}
}

// newNode returns the pipeline to a new node.
func newNode(t *testing.T, s *Server) *pipeline {
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	return s.pipelineTo(client)
}

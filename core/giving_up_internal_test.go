package core

import (
	"testing"
	"time"
)

// Without releases under way, calls look nothing up.
func TestGivingUpNothing(t *testing.T) {
	var g givingUp
	g.begin("k", time.Now(), nil)
	g.begin("k", time.Now(), nil)
	if g.end("k"); g.of("k").releases != 1 {
		t.Error("one is under way")
	}
	if g.end("k"); g.of("k").releases != 0 || g.releases.Load() != 0 {
		t.Errorf("%d are under way", g.releases.Load())
	}
}

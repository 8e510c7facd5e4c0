package redistest

import (
	"testing"
	"time"
)

func TestTheClockIsSetBack(t *testing.T) {
	server, clock := StartWithClock(t)
	if clock == nil {
		t.Skip("there is no clock")
	}
	client := server.Client(t)
	before := client.Time(t.Context()).Val()
	clock.SetBack(t, time.Hour)
	clock.SetBack(t, time.Hour)
	after := client.Time(t.Context()).Val()
	if by := before.Sub(after); by < 119*time.Minute || by > 2*time.Hour {
		t.Errorf("it was set back by %v", by)
	}
}

package core

import (
	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// acquisition is what Redis knows of a lock. After a hand-off in memory it is that of the first holder.
type acquisition struct {
	store.Terms
	owner      string
	redisToken int64
	ahead      bool          // the token is ahead of the clock of Redis
	attempt    int32         // the number of that at an idempotent request; 0: it is for none
	heldSince  schedule.Time // by this process
}

// grant is a lock that a call has got.
type grant struct {
	acquisition
	life.Times
	token   int64
	hold    string
	resends *conn.Resends // of the acquisition
}

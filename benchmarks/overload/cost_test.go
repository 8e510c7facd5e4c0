package overload

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// unit is what one script costs, so that the parts of it are whole numbers: 27 us of a real Redis 7.0's CPU, where a
// connection with HELLO took 35 us, CLIENT SETINFO 12 us, and PING 9 us.
const (
	unit          = 20
	unitOfHello   = 25 // with accept and close
	unitOfClient  = 9
	unitOfAnyElse = 7
	unitTime      = 2 * time.Millisecond
)

// capacity is how many calls of two units a server does a second.
const capacity = float64(time.Second/unitTime) / 2

// costOf returns what a command costs, in parts of a unit. A script of latchkey that does several calls costs as much as
// they would one by one.
func costOf(words []string) int {
	name := strings.ToLower(words[0])
	switch name {
	case "hello":
		return unitOfHello
	case "client":
		return unitOfClient
	case "set": // the peers take locks with it
		return unit
	case "eval", "evalsha":
	default:
		return unitOfAnyElse
	}
	digest := words[1]
	if name == "eval" {
		digest = redistest.Digest(words[1])
	}
	keys, err := strconv.Atoi(words[2])
	if err != nil {
		panic(err)
	}
	if each := keysOfACall()[digest]; each > 0 {
		return unit * max(1, keys/each)
	}
	return unit
}

// keysOfACall are how many keys each call has in latchkey's scripts of several calls, by their digests.
var keysOfACall = sync.OnceValue(func() map[string]int {
	out := map[string]int{}
	for name, each := range map[string]int{"acquire": 3, "release": 1, "renew": 1} {
		_, digest, err := redistest.ReadScript(redistest.Merged[name])
		if err != nil {
			panic(err)
		}
		out[digest] = each
	}
	return out
})

package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// busOffset is how far above its port a cluster node listens for other nodes.
const busOffset = 10000

// freePort returns a port that, with the cluster bus port that belongs to it,
// nobody listens on at this moment. Both lie below the range from which systems
// take ports for outgoing connections. Somebody else may still be quicker.
func freePort() int {
	for {
		port := 12000 + rand.IntN(busOffset)
		if isFree(port) && isFree(port+busOffset) {
			return port
		}
	}
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

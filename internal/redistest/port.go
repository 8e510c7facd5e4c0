package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// busOffset is how far above its port a cluster node listens for other nodes.
const busOffset = 10000

// portClaim keeps a port for a server also while that does not run: one that was killed must
// not come back as the server of another test. It is a UDP socket, which a Redis has no use
// for, so that it holds among processes and ends with this one.
type portClaim struct{ net.PacketConn }

// claimPort returns a port that nobody has claimed and that, with the cluster bus port that
// belongs to it, nobody listens on at this moment. Both lie below the range from which systems
// take ports for outgoing connections. Somebody else may still be quicker.
func claimPort() (int, portClaim) {
	for {
		port := 12000 + rand.IntN(busOffset)
		socket, err := net.ListenPacket("udp", loopback(port))
		if err != nil {
			continue
		}
		if isFree(port) && isFree(port+busOffset) {
			return port, portClaim{socket}
		}
		_ = socket.Close()
	}
}

// release gives the port back. The zero value has none.
func (c portClaim) release() {
	if c.PacketConn != nil {
		_ = c.Close()
	}
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

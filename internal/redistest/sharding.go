package redistest

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

// StartShardingProxy spreads keys over servers, as some proxies do: each command goes
// to the server of its first key, whatever further keys it names. It ends with the
// test. It returns its address.
func StartShardingProxy(tb testing.TB, servers ...*Server) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go shard(conn, servers)
		}
	}()
	return listener.Addr().String()
}

// shard serves one connection.
func shard(conn net.Conn, servers []*Server) {
	defer conn.Close()
	backends := make([]*rawConn, len(servers))
	for i, s := range servers {
		c, err := s.dialRaw()
		if err != nil {
			return
		}
		defer c.Close()
		backends[i] = c
	}
	in := bufio.NewReader(conn)
	for {
		_, args, err := readRequest(in)
		if err != nil {
			return
		}
		if strings.EqualFold(args[0], "hello") {
			if _, err := io.WriteString(conn, "-ERR unknown command\r\n"); err != nil {
				return
			}
			continue
		}
		answer, err := backends[ShardOf(firstKey(args), len(servers))].call(args...)
		if err != nil {
			return
		}
		if _, err := conn.Write(answer.raw); err != nil {
			return
		}
	}
}

func firstKey(args []string) string {
	at := 1
	if strings.HasPrefix(strings.ToLower(args[0]), "eval") {
		at = 3
	}
	if len(args) <= at {
		return ""
	}
	return args[at]
}

// ShardOf is the number of the server that has a key.
func ShardOf(key string, servers int) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok {
			key = tag
		}
	}
	sum := 0
	for _, b := range []byte(key) {
		sum = sum*31 + int(b)
	}
	return (sum & 0xffff) % servers
}

package redistest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"
)

// rawConn is a plain RESP2 connection, for what a client library would hide or
// slow down.
type rawConn struct {
	net.Conn
	r *bufio.Reader
}

// dialRaw connects and logs in where the server asks for a password.
func (s *Server) dialRaw() (*rawConn, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), patience)
	if err != nil {
		return nil, err
	}
	c := &rawConn{conn, bufio.NewReader(conn)}
	if p := s.password(); p != "" {
		if _, err := c.call("auth", p); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

// call sends a command and returns its reply, which may be an error reply.
func (c *rawConn) call(args ...string) (reply, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return reply{}, err
	}
	if _, err := c.Write(appendRequest(nil, args...)); err != nil {
		return reply{}, err
	}
	return readReply(c.r)
}

// call runs one command on a connection of its own.
func (s *Server) call(args ...string) (reply, error) {
	c, err := s.dialRaw()
	if err != nil {
		return reply{}, err
	}
	defer c.Close()
	return c.call(args...)
}

// answers says that PING works and that p, and no stranger on the same port,
// answers it.
func (s *Server) answers(p *process) bool {
	c, err := s.dialRaw()
	if err != nil {
		return false
	}
	defer c.Close()
	info, err := c.call("info", "server")
	if err != nil || !strings.Contains(info.text, fmt.Sprintf("process_id:%d\r\n", p.cmd.Process.Pid)) {
		return false
	}
	pong, err := c.call("ping")
	return err == nil && pong.text == "PONG"
}

package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// stream is a connection of which one direction can be closed.
type stream interface {
	net.Conn
	CloseWrite() error
}

// identity is a key and its certificate, for 127.0.0.1: the proxies of a process have one.
type identity struct {
	certificate []byte
	key         *ecdsa.PrivateKey
}

var theIdentity = sync.OnceValues(func() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return &identity{certificate, key}, err
})

// Proxy starts a proxy before this server.
func (s *Server) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	p := NewProxy(tb, s.Addr())
	p.password = s.password()
	return p
}

// EncryptedProxy is Proxy with TLS between the clients and the proxy. go-redis does not see that
// an idle connection of that kind has ended.
func (s *Server) EncryptedProxy(tb testing.TB) *Proxy {
	tb.Helper()
	i, err := theIdentity()
	if err != nil {
		tb.Fatalf("proxy: %v", err)
	}
	p := s.Proxy(tb)
	p.mu.Lock()
	p.identity = i
	p.mu.Unlock()
	return p
}

// Certificate is that of the encrypted proxies, in DER, for [Trusting]; nil for one without TLS.
func (p *Proxy) Certificate() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.identity == nil {
		return nil
	}
	return p.identity.certificate
}

// Trusting is the configuration of clients that trust a proxy with a certificate; nil for none.
func Trusting(certificate []byte) (*tls.Config, error) {
	if certificate == nil {
		return nil, nil
	}
	c, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(c)
	return &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"}, nil
}

// trusting is for clients of this proxy.
func (p *Proxy) trusting() []func(*redis.Options) {
	return []func(*redis.Options){func(o *redis.Options) { o.TLSConfig, _ = Trusting(p.Certificate()) }}
}

// streamOf is what is read from a client's connection, and written to it.
func (p *Proxy) streamOf(tcp *net.TCPConn) stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.identity == nil {
		return tcp
	}
	certificate := tls.Certificate{Certificate: [][]byte{p.identity.certificate}, PrivateKey: p.identity.key}
	return tls.Server(tcp, &tls.Config{Certificates: []tls.Certificate{certificate}})
}

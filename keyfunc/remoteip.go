package keyfunc

import "net/netip"

// RemoteIP takes the IP address of the direct peer, from RemoteAddr. The forms of
// an address have one key: ::ffff:192.0.2.1 is 192.0.2.1, and an IPv6 zone, whose
// name differs from host to host, is dropped. The part is named "remoteIP".
//
// It never looks at X-Forwarded-For or the like, which any client can send. Behind
// a proxy the peer is the proxy, and all clients would share its key: have a
// middleware that knows your proxies store the client's address, and use [Value].
//
// It fails with [ErrMissing] when RemoteAddr is empty and with [ErrMalformed] when it
// is not an IP address with a port, as with a Unix socket, or where a middleware has
// put a header's value there.
func RemoteIP() Func[Request] {
	const part = "remote address"
	return namedPart("remoteIP", part, func(r Request) (string, error) {
		address := r.HTTP().RemoteAddr
		if address == "" {
			return "", &partError{part: part, kind: ErrMissing}
		}
		peer, err := netip.ParseAddrPort(address)
		if err != nil {
			return "", &partError{part: part, kind: ErrMalformed, why: "not an IP address with a port", cause: err}
		}
		return peer.Addr().Unmap().WithZone("").String(), nil
	})
}

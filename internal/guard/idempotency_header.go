package guard

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// dropped are the fields of an answer that are not stored. Those from Connection to Upgrade are of one connection, as are
// those that Connection names: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1. The others are of one answer only, or
// secrets of it.
var dropped = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Transfer-Encoding", "Upgrade",
	"Set-Cookie", "Www-Authenticate", "Proxy-Authenticate", "Authentication-Info", "Proxy-Authentication-Info", "Date", "Age",
}

const (
	replayedHeader = "Idempotent-Replayed"
	contentType    = "Content-Type"
	cacheControl   = "Cache-Control"
)

// head is the header of an answer, as far as the handler has made it: what middleware outside has set before is set
// again when the answer is sent again, such as the ID of the request.
type head struct {
	outside  http.Header // as it was before the handler
	fields   http.Header // that the handler has set; nil: the answer has not begun
	without  []string    // fields of outside that it has taken out
	trailers []string    // fields that are to follow the body
	untyped  bool        // net/http finds out the type of the body
}

// begin notes the header with which the answer begins.
func (a *head) begin(h http.Header) {
	a.fields = http.Header{}
	isSkipped := isOneOf(slices.Concat(dropped, namedIn(h["Connection"])))
	for field, values := range h {
		before, set := a.outside[field]
		if set && slices.Equal(values, before) || isSkipped(field) || strings.HasPrefix(field, http.TrailerPrefix) {
			continue
		}
		a.fields[field] = slices.Clone(values)
	}
	for field := range a.outside {
		if _, still := h[field]; !still && !isSkipped(field) {
			a.without = append(a.without, field)
		}
	}
	a.trailers = namedIn(h["Trailer"])
	_, typed := h[contentType]
	a.untyped = !typed && h.Get("Content-Encoding") == ""
}

// flushed notes the type that net/http has found out from the body so far, which may be another one from all of it.
func (a *head) flushed(body []byte) {
	if !a.untyped {
		return
	}
	a.untyped = false
	a.fields[contentType] = nil
	if len(body) > 0 {
		a.fields.Set(contentType, http.DetectContentType(body))
	}
}

// trailer returns the fields that follow the body, from the header as it is after the handler.
func (a *head) trailer(h http.Header) http.Header {
	trailer, isSkipped := http.Header{}, isOneOf(dropped)
	for field, values := range h {
		name, prefixed := strings.CutPrefix(field, http.TrailerPrefix)
		declared := slices.Contains(a.trailers, field) && !slices.Equal(values, a.outside[field])
		if (prefixed || declared) && !isSkipped(name) {
			trailer[field] = slices.Clone(values)
		}
	}
	return trailer
}

// isOneOf reports whether a field has one of the names, in whichever letter case: net/http sends it as it was set.
func isOneOf(names []string) func(field string) bool {
	return func(field string) bool { return slices.Contains(names, http.CanonicalHeaderKey(field)) }
}

// namedIn returns the names of fields in the values of one.
func namedIn(values []string) (names []string) {
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// write sends the answer again. No cache may have it for another request: that one may be of somebody else.
func (a *storedAnswer) write(w http.ResponseWriter) {
	h := w.Header()
	for _, field := range a.Without {
		delete(h, field)
	}
	maps.Copy(h, a.Header)
	for field, values := range a.Trailer {
		if strings.HasPrefix(field, http.TrailerPrefix) { // net/http has to know of it before the header is sent
			h[field] = values
		}
	}
	h.Set(replayedHeader, "true")
	if a.safe || h.Get(cacheControl) == "" {
		h.Set(cacheControl, "no-store")
	}
	w.WriteHeader(a.Status)
	if len(a.body) > 0 || len(a.Trailer) > 0 { // gin keeps the status back, and with it the header, which would have the trailers
		_, _ = w.Write(a.body) // a client that left meanwhile needs no answer
	}
	maps.Copy(h, a.Trailer)
}

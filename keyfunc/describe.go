package keyfunc

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Description is what a Func reads.
type Description struct {
	// Name is the key without its values: "orderID", or "cart:value.userID:item" where it
	// has several parts; of a Template it is the text. A part whose name is not known is "*";
	// where there is no other, Name is empty.
	Name string
	// Parts are what is read, such as `path parameter "orderID"`, each once. What is written by
	// hand is "a key function".
	Parts []string
	// Names are the names that the program has given to these parts, such as "orderID": see [PartName].
	Names []string
	// Params are the names of the path parameters that are asked for, also by Funcs that are
	// written by hand.
	Params []string
	// Optional says that without some part no lock is taken: it has an [Optional].
	Optional bool
	// Err is why there can be no key: it is [ErrNotSetUp] where the route does not declare a
	// path parameter, and [ErrSkip] as well where [Optional] lets the request pass.
	Err error
}

// Describe finds out what f reads, by calling it once, with a Request or Task that no client
// has sent. It is for lists and metrics, before there is a request: adapters describe a Func
// when it is given to them. The route declares those path parameters of which declares says so,
// all if it is nil.
//
// A Func that is written by hand is called too, and finds a request without any values; what it
// then returns, or panics with, does not matter. Where S is neither [Request] nor [Task]
// nothing is found out.
func Describe[S any](f Func[S], declares func(param string) bool) Description {
	n := &notes{declares: declares}
	s, ok := any(notedRequest{n}).(S)
	if !ok {
		s, ok = any(notedTask{}).(S)
	}
	if !ok {
		return Description{}
	}
	d, err := describe(f, s, n)
	name := d.name
	if name == "" && d.key != unknown.key {
		name = strings.TrimSuffix(strings.ReplaceAll(d.key, nameEnd+separator, separator), nameEnd)
	}
	return Description{Name: name, Parts: n.parts, Names: n.names, Params: n.params, Optional: n.optional, Err: err}
}

// notes are what is asked of a request or task that no client has sent.
type notes struct {
	declares func(param string) bool
	parts    []string
	names    []string
	params   []string
	optional bool
	missing  bool // a parameter that the route does not declare
}

func (n *notes) part(p part) {
	if !slices.Contains(n.parts, p.text) {
		n.parts = append(n.parts, p.text)
	}
	n.name(p.name)
}

func (n *notes) name(name string) {
	if n != nil && name != "" && !slices.Contains(n.names, name) {
		n.names = append(n.names, name)
	}
}

var byHand = part{text: "a key function"}

// notesOf returns nil for what a client has sent.
func notesOf(s any) *notes {
	if t := traceOf(s); t != nil {
		return t.notes
	}
	return nil
}

// A Request or Task in which nothing is, and which notes what is asked of it.
type (
	notedRequest struct{ *notes }
	notedTask    struct{}
)

func (r notedRequest) HTTP() *http.Request {
	return &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/"}, Header: http.Header{}, Body: http.NoBody}
}

func (r notedRequest) Param(name string) (value string, declared bool) {
	if !slices.Contains(r.params, name) {
		r.params = append(r.params, name)
	}
	declared = r.declares == nil || r.declares(name)
	r.missing = r.missing || !declared
	return "", declared
}

func (r notedRequest) Value(any) any { return nil }

func (notedTask) Type() string    { return "" }
func (notedTask) Payload() []byte { return nil }

// unknown stands for a part that is written by hand.
var unknown = derived{key: "*", value: "*"}

// describe is derive where no client has sent s, and notes in n what f reads.
func describe[S any](f Func[S], s S, n *notes) (d derived, err error) {
	defer func() {
		if recover() != nil { // of the user's own: it has found nothing of what it expects
			n.part(byHand)
			d, err = unknown, nil
		}
	}()
	t := &trace{notes: n}
	key, err := f(withTrace(s, t))
	if n.missing && errors.Is(err, ErrNotSetUp) {
		return derived{}, err
	}
	if d, ok := t.find(key); ok && err == nil {
		return d, nil
	}
	n.optional = n.optional || errors.Is(err, ErrSkip)
	n.part(byHand)
	return unknown, nil
}

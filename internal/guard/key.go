package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// keysOf returns the keys of a request, none where it passes without a lock, or how to refuse it.
func (g *Guard) keysOf(r Request) ([]string, *Refusal) {
	if g.config.Param != "" {
		if guarded, refusal := g.declares(r); !guarded {
			return nil, refusal
		}
	}
	if i := g.config.Idempotent; i != nil && IsSafe(r.HTTP()) && !i.isGiven(r) {
		return nil, nil
	}
	keys, err := g.keys(r)
	if err == nil {
		err = g.buffer(r.HTTP())
	}
	switch {
	case err == nil:
		return keys, nil
	case errors.Is(err, keyfunc.ErrSkip):
		return nil, nil
	case isSetup(err) && isUnmatched(r):
		refusal, _ := withoutKey(keyfunc.ErrMissing)
		return nil, refusal.because(err)
	case isSetup(err):
		return nil, misconfigured.because(err)
	case errors.Is(r.HTTP().Context().Err(), context.Canceled):
		return nil, clientGone.because(err)
	}
	return nil, refusalForKey(err)
}

// keys derives the keys, and finds out whether the key function, the route and the path fit.
func (g *Guard) keys(r Request) ([]string, error) {
	if name := g.config.Param; name != "" {
		keys, err := g.config.Keys(r) // declares has checked it
		if err == nil {
			value, _ := r.Param(name)
			err = keyfunc.ValidatePath(r.HTTP(), value)
		}
		return keys, err
	}
	return derive(g.config.Keys, r)
}

// derive calls a key function, and finds out whether it fits the route and the path.
func derive(of keyfunc.Set[keyfunc.Request], r Request) ([]string, error) {
	checked := &checkedRequest{Request: r}
	keys, err := of(checked)
	if fault := checked.fault(err == nil); fault != nil {
		return nil, fault
	}
	switch {
	case err == nil && len(keys) == 0: // of a function that was written by hand
		err = keyfunc.ErrMissing
	case err == nil:
		err = checked.path()
	}
	return keys, err
}

// partOf returns the name of the part without which there is no key, if it is one of those that were known before there was a
// request: others may be a client's word.
func (g *Guard) partOf(refusal *Refusal) string {
	if isOne := len(g.reads.Parts) == 1 && len(g.reads.Names) == 1; isOne && errors.Is(refusal.cause, core.ErrInvalidKey) {
		return g.reads.Names[0]
	}
	if slices.Contains(g.reads.Names, refusal.Part) || refusal.Part == "body" || refusal.Part == "path" {
		return refusal.Part
	}
	return ""
}

// partText is what the log says of it: the same name, or those of all parts of a key that is too long.
func (g *Guard) partText(refusal *Refusal) string {
	switch {
	case refusal.Part != "" || keyfunc.PartName(refusal.cause) != "":
		return refusal.Part
	case errors.Is(refusal.cause, core.ErrInvalidKey):
		return strings.Join(g.reads.Names, ", ")
	}
	return keyfunc.Part(refusal.cause)
}

// alone is a key as a set of its own.
func alone(key keyfunc.Func[keyfunc.Request]) keyfunc.Set[keyfunc.Request] {
	return func(r keyfunc.Request) ([]string, error) {
		k, err := key(r)
		return []string{k}, err
	}
}

// checkedRequest notices for which path parameters a key function asks: in vain, or for one that
// is there twice.
type checkedRequest struct {
	Request
	params         []string
	twice, missing error
}

func (c *checkedRequest) Param(name string) (value string, declared bool) {
	value, declared = c.Request.Param(name)
	if declared && !slices.Contains(c.params, name) {
		c.params = append(c.params, name)
	}
	switch err := misspelt(c.Request, name, declared); {
	case err == nil && declared:
	case err == nil:
		if _, known := c.Route(); !known && c.missing == nil {
			c.missing = errNoRoute
		}
	case declared:
		c.twice = err
	default:
		c.missing = err
	}
	return value, declared
}

// fault returns what is wrong with the configuration. A key function that has its key may have
// tried several names.
func (c *checkedRequest) fault(hasKey bool) error {
	if c.twice != nil || hasKey {
		return c.twice
	}
	return c.missing
}

// path returns an error when the path leads past the parameters that make the key.
func (c *checkedRequest) path() error {
	if len(c.params) == 0 {
		return nil
	}
	values := make([]string, len(c.params))
	for i, name := range c.params {
		values[i], _ = c.Request.Param(name)
	}
	return keyfunc.ValidatePath(c.HTTP(), values...)
}

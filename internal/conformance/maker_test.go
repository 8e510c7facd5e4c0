package conformance_test

import (
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// with is what guards have in common.
type with struct {
	locker  *core.Locker
	options []core.Option
}

// maker has the functions of an adapter, or the methods of its Guards, that make middleware M. C is its Config.
type maker[M, C any] struct {
	byParam, byHeader, byQuery, byTemplate func(string, ...core.Option) M
	by, idempotent                         func(keyfunc.Func[keyfunc.Request], ...core.Option) M
	byAll                                  func(keyfunc.Set[keyfunc.Request], ...core.Option) M
	new                                    func(C) M
}

// guards is the Guards type of an adapter.
type guards[M, C any] interface {
	ByParam(name string, opts ...core.Option) M
	ByHeader(name string, opts ...core.Option) M
	ByQuery(name string, opts ...core.Option) M
	ByTemplate(t string, opts ...core.Option) M
	By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) M
	ByAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) M
	Idempotent(scope keyfunc.Func[keyfunc.Request], opts ...core.Option) M
	New(cfg C) M
}

func makerOf[M, C any](g guards[M, C]) maker[M, C] {
	return maker[M, C]{g.ByParam, g.ByHeader, g.ByQuery, g.ByTemplate, g.By, g.Idempotent, g.ByAll, g.New}
}

// oneEach has routes with the same guards share the middleware of each.
func oneEach[M any](make func(guarding) M) func(*guarding) M {
	made := map[*guarding]M{}
	return func(g *guarding) M {
		if _, found := made[g]; !found {
			made[g] = make(*g)
		}
		return made[g]
	}
}

// middleware makes what g says, by the Config that configOf makes where g has one.
func (m maker[M, C]) middleware(g guarding, configOf func(config) C) M {
	switch {
	case g.config != nil:
		return m.new(configOf(*g.config))
	case g.template != "":
		return m.byTemplate(g.template, g.options...)
	case g.key != nil:
		return m.by(g.key, g.options...)
	case g.scope != nil:
		return m.idempotent(g.scope, g.options...)
	case g.keys != nil:
		return m.byAll(g.keys, g.options...)
	case g.header != "":
		return m.byHeader(g.header, g.options...)
	case g.query != "":
		return m.byQuery(g.query, g.options...)
	}
	return m.byParam(g.param, g.options...)
}

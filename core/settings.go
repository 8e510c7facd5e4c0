package core

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

// settings are what the options of New and of one call add up to.
type settings struct {
	option.Settings

	// Of New only.
	Prefix    string
	Describe  string        // "": by the host
	Timeout   time.Duration // 0: derived from the lease
	Replicas  conn.Replicas
	Sharded   bool
	Logger    *slog.Logger
	Observers []Observer
}

// apply has options set what they say, and tells all that is wrong with them.
func (s *settings) apply(opts []Option) error {
	s.set(opts)
	return s.Err()
}

func (s *settings) set(opts []Option) {
	for _, o := range opts {
		if o.set == nil {
			o = refused("an Option is empty: make it with a function of package core")
		}
		o.set(s)
	}
}

// prepared is what options have come to that are one. Most are given to one Locker, again and again.
type prepared struct{ last atomic.Pointer[preparedFor] }

type preparedFor struct {
	locker   *Locker
	settings *settings
}

// prepare returns options as one.
func prepare(opts []Option) Option {
	opts = slices.Clone(opts)
	return Option{func(s *settings) { s.set(opts) }, new(prepared)}
}

// settings returns those of one call. They may be those of others as well.
func (l *Locker) settings(opts []Option) (*settings, error) {
	if len(opts) == 0 {
		return &l.defaults, nil
	}
	var p *prepared
	if len(opts) == 1 {
		p = opts[0].prepared
	}
	if p != nil {
		if known := p.last.Load(); known != nil && known.locker == l {
			return known.settings, nil
		}
	}
	own := l.defaults
	own.Scope = option.OfCall
	if err := own.apply(opts); err != nil {
		return nil, err
	}
	if p != nil {
		p.last.Store(&preparedFor{l, &own})
	}
	return &own, nil
}

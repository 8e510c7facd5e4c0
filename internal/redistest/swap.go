package redistest

// swap keeps a reply back until another one comes, and exchanges the two. The caller holds
// proxy.mu.
func (f *Fault) swap(p *packet, request []string) {
	if f.off {
		return
	}
	if f.kept == nil {
		f.kept, f.pass = p, make(chan struct{})
		p.hold = f.pass
		return
	}
	f.kept.raw, p.raw = p.raw, f.kept.raw
	f.letPass()
	f.note(request)
}

// letPass lets a reply go on that is kept. The caller holds proxy.mu.
func (f *Fault) letPass() {
	if f.kept != nil {
		close(f.pass)
		f.kept = nil
	}
}

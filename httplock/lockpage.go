package httplock

import (
	"net/http"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock/internal/lockpage"
)

// LockPageOption changes what [LockPage] does.
type LockPageOption struct{ set func(*lockpage.Config) }

// AllowForceUnlock lets those who see the page free a lock, whoever holds it, by POST with the
// parameters key and owner. owner is the holder that they see, one of them where several hold
// the lock: that one is evicted alone. It is empty for what nobody holds, such as a dedup window
// or a parked lock. If that has changed meanwhile, nothing is done and the answer is 409.
// Requests that a browser sends for another site are refused with 403. Each lock that was freed
// leaves a line in the log.
func AllowForceUnlock() LockPageOption {
	return LockPageOption{func(c *lockpage.Config) { c.ForceUnlock = true }}
}

// AllowedHosts answers requests for these hosts only, such as "ops.example.com", and
// refuses others with 421. Without it the page answers for any host: then a web site that an
// operator visits can have its own name stand for the address of the page (DNS rebinding), read
// the page in the operator's browser, and free locks where that is allowed. An authentication
// that browsers do not give to another name, such as a cookie or a password, prevents it as
// well. A host with a port is for that port; one without is for any. Case does not matter. It
// panics without hosts, and at what is not a host.
func AllowedHosts(hosts ...string) LockPageOption {
	lockpage.MustHosts(hosts)
	return LockPageOption{func(c *lockpage.Config) { c.Hosts = append(c.Hosts, hosts...) }}
}

// LockPage returns a page that shows what locker holds and waits for in this
// process, and looks up any key in Redis:
//
//	mux.Handle("/debug/locks", authenticated(httplock.LockPage(locker)))
//
// The page shows keys and owners to whoever can reach it, so put it behind your own
// authentication. It changes nothing unless [AllowForceUnlock] is given. nil for the
// Locker means [core.Default], looked up for each request.
//
// It is HTML, or JSON for clients that accept application/json or ask with format=json. Each list
// shows at most 1,000 entries. Parameters: key looks up a key, and leaves the lists out; filter
// is a part of the keys or owners to list; sort is key, age or waiters. It needs no
// script and nothing from elsewhere, and works at any path. The status is 503 when
// Redis does not answer a look-up, with what the process holds of that key all the
// same, and 400 when the key is empty or too long.
func LockPage(locker *core.Locker, opts ...LockPageOption) http.Handler {
	cfg := lockpage.Config{Locker: locker}
	for _, o := range opts {
		o.set(&cfg)
	}
	return lockpage.New(cfg)
}

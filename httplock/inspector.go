package httplock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
)

// LockPageOption changes what [LockPage] does.
type LockPageOption func(*inspector)

// AllowForceUnlock lets those who see the page free a lock, whoever holds it, by
// POST with the parameters key and owner; owner is who holds it as far as they
// know, one of them where several do, who is put out alone, and empty for what nobody holds, such as
// a dedup window or a lock that is parked. If that has changed meanwhile nothing is done, and
// the answer is 409. Requests that a browser sends for another site are refused
// with 403. Each lock that was freed leaves a line in the log.
func AllowForceUnlock() LockPageOption {
	return func(p *inspector) { p.forces = true }
}

// AllowedHosts answers requests for these hosts only, such as "ops.example.com", and
// refuses others with 421. Without it the page answers whatever host it is asked for: then
// a web site that an operator visits can have its own name stand for the address of the
// page (DNS rebinding), read the page in the operator's browser, and free locks where that
// is allowed. An authentication that browsers do not give to another name, such as a cookie
// or a password, prevents it as well. A host with a port is for that port; one without is
// for any. Case does not matter. It panics without hosts, and at what is not a host.
func AllowedHosts(hosts ...string) LockPageOption {
	if len(hosts) == 0 {
		panic(`httplock: AllowedHosts needs hosts, as in AllowedHosts("ops.example.com", "localhost")`)
	}
	for _, host := range hosts {
		if u, err := url.Parse("http://" + host); err != nil || u.Host != host || u.Hostname() == "" || host[0] != '[' && strings.Contains(u.Hostname(), ":") {
			panic(fmt.Sprintf("httplock: AllowedHosts(%q): give a host, or host:port, as it is in the address of the page", host))
		}
	}
	return func(p *inspector) { p.hosts = append(p.hosts, hosts...) }
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
// It is HTML, or JSON for who accepts application/json or asks with format=json. Of
// each list at most 1,000 entries are shown. Parameters: key looks up a key, and leaves
// the lists out; filter
// is a part of the keys or owners to list; sort is key, age or waiters. It needs no
// script and nothing from elsewhere, and works at any path. The status is 503 when
// Redis does not answer a look-up, with what the process holds of that key all the
// same, and 400 when the key is empty or too long.
func LockPage(locker *core.Locker, opts ...LockPageOption) http.Handler {
	host, _ := os.Hostname() // without one the page has only the process id
	p := &inspector{locker: locker, host: host, pid: os.Getpid(), page: newPage()}
	for _, o := range opts {
		o(p)
	}
	return p
}

type inspector struct {
	locker *core.Locker
	forces bool
	hosts  []string // that it answers for; empty: any
	host   string
	pid    int
	page   *page
	origin http.CrossOriginProtection
}

const (
	pathless    = "?" // links and redirects keep the path, whatever router is outside
	maxFormBody = 16 << 10
)

func (p *inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", p.page.policy)
	// With no-referrer browsers would not tell the origin of a POST.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept") // beside what is outside of it

	locker := p.locker
	if locker == nil {
		locker = core.Default()
	}
	switch {
	case !p.answersFor(r.Host):
		refuse(w, http.StatusMisdirectedRequest, "The page does not answer for this host.")
	case locker == nil:
		refuse(w, http.StatusInternalServerError, "No Locker is set: call core.SetDefault, or give one to Inspector.")
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		v := readView(r.URL.Query())
		p.answer(w, r, p.report(r.Context(), locker, v), http.StatusOK)
	case r.Method == http.MethodPost && p.forces:
		p.post(w, r, locker)
	case p.forces:
		h.Set("Allow", "GET, HEAD, POST")
		refuse(w, http.StatusMethodNotAllowed, "")
	default:
		h.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "")
	}
}

// answersFor says whether a request that names this host is for the page.
func (p *inspector) answersFor(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return p.hosts == nil || slices.ContainsFunc(p.hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(strings.Trim(allowed, "[]"), name)
	})
}

func refuse(w http.ResponseWriter, status int, detail string) {
	(&guard.Refusal{Status: status, Detail: detail}).Write(w)
}

// post frees a lock.
func (p *inspector) post(w http.ResponseWriter, r *http.Request, locker *core.Locker) {
	if p.origin.Check(r) != nil {
		refuse(w, http.StatusForbidden, "The request comes from another site.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBody)
	if r.ParseForm() != nil || !r.Form.Has("key") || !r.Form.Has("owner") {
		refuse(w, http.StatusBadRequest, "The parameters key and owner are required.")
		return
	}
	v := readView(r.Form)
	owner := r.Form.Get("owner")
	var err error
	v.outcome, err = force(r.Context(), locker, v.key, owner)
	switch {
	case err != nil && r.Context().Err() == nil:
		slog.WarnContext(r.Context(), "latchkey: freeing a lock from the lock page failed", "key", v.key, "error", err)
	case v.outcome == freed:
		slog.WarnContext(r.Context(), "latchkey: a lock was freed from the lock page",
			"key", v.key, "owner", owner, "client", r.RemoteAddr)
	}
	status := http.StatusOK
	switch {
	case err != nil:
		status = http.StatusServiceUnavailable
	case v.outcome == changed:
		status = http.StatusConflict
	case !wantsJSON(r):
		// A page that can be loaded again without freeing what is locked by then.
		w.Header().Set("Location", v.link())
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.answer(w, r, p.report(r.Context(), locker, v), status)
}

// What a POST has come to.
const (
	freed   = "freed"
	free    = "free"    // it was already
	changed = "changed" // somebody else has it than the one who asked believed
	unsure  = "unsure"  // Redis has not confirmed
)

// force frees a lock if owner has it, or ends that holder of several. The look before the deed tells whether Redis
// can be asked at all.
func force(ctx context.Context, locker *core.Locker, key, owner string) (outcome string, err error) {
	info, err := locker.Inspect(ctx, key)
	switch {
	case err != nil:
		return "", err
	case !info.Locked:
		return free, nil
	case owner == "" && info.Holders != nil,
		owner != "" && !slices.ContainsFunc(info.Holders, func(h core.Holder) bool { return h.Owner == owner }):
		return changed, nil
	}
	done, err := locker.ForceUnlock(ctx, key, owner)
	switch {
	case err != nil:
		return unsure, err
	case done:
		return freed, nil
	}
	switch info, err = locker.Inspect(ctx, key); {
	case err != nil:
		return "", err
	case info.Locked:
		return changed, nil
	default:
		return free, nil
	}
}

// answer writes a report. Its look-up may have another status than the rest.
func (p *inspector) answer(w http.ResponseWriter, r *http.Request, report *report, status int) {
	if report.LookUp != nil && report.LookUp.status != 0 {
		status = report.LookUp.status
	}
	var body bytes.Buffer
	contentType := "text/html; charset=utf-8"
	var err error
	if wantsJSON(r) {
		contentType = "application/json"
		encoder := json.NewEncoder(&body)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = p.page.render(&body, report)
	}
	if err != nil {
		panic(err) // strings and numbers only
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // a client that left meanwhile needs no answer
}

// wantsJSON reports whether the client asks for JSON, or says that it likes it
// better than HTML. What it accepts by a wildcard does not count.
func wantsJSON(r *http.Request) bool {
	switch r.URL.Query().Get("format") {
	case "json":
		return true
	case "html":
		return false
	}
	accepted := strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",")
	quality := func(want string) float64 {
		i := slices.IndexFunc(accepted, func(a string) bool { t, _, _ := mime.ParseMediaType(a); return t == want })
		if i < 0 {
			return 0
		}
		_, parameters, _ := mime.ParseMediaType(accepted[i])
		if q, err := strconv.ParseFloat(parameters["q"], 64); err == nil {
			return q
		}
		return 1
	}
	return quality("application/json") > quality("text/html")
}

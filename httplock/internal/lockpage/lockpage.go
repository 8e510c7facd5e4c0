// Package lockpage is the page that shows operators what a process holds and waits for.
package lockpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/internal/visible"
)

// Config says what the page shows, and to whom.
type Config struct {
	Locker      *core.Locker // nil: core.Default
	ForceUnlock bool         // by those who see the page
	Hosts       []string     // that the page answers for; none: any
}

// MustHosts panics without hosts, and at what is not a host.
func MustHosts(hosts []string) {
	if len(hosts) == 0 {
		panic(`httplock: AllowedHosts needs hosts, as in AllowedHosts("ops.example.com", "localhost")`)
	}
	for _, host := range hosts {
		u, err := url.Parse("http://" + host)
		if err != nil || u.Host != host || u.Hostname() == "" || host[0] != '[' && strings.Contains(u.Hostname(), ":") {
			panic(fmt.Sprintf("httplock: AllowedHosts(%q): give a host, or host:port, as it is in the address of the page", host))
		}
	}
}

// New returns the page.
func New(cfg Config) http.Handler {
	host, _ := os.Hostname() // without one the page has only the process id
	return &lockPage{Config: cfg, host: host, pid: os.Getpid(), policy: contentPolicy()}
}

type lockPage struct {
	Config
	host   string
	pid    int
	policy string
}

const (
	pathless    = "?" // links and redirects keep the path, whatever router is outside
	maxFormBody = 16 << 10
)

func (p *lockPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", p.policy)
	// With no-referrer browsers would not send the origin of a POST.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept") // beside what is outside of it

	locker := p.Locker
	if locker == nil {
		locker = core.Default()
	}
	switch {
	case !p.answersFor(r.Host):
		refuse(w, http.StatusMisdirectedRequest, "The page does not answer for this host.")
	case locker == nil:
		refuse(w, http.StatusInternalServerError, "No Locker is set: call core.SetDefault, or give one to LockPage.")
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		v := readView(r.URL.Query())
		if !wantsJSON(r) {
			v.outcome = takeNote(w, r, v.key)
		}
		p.answer(w, r, p.report(r.Context(), locker, v), http.StatusOK)
	case r.Method == http.MethodPost && p.ForceUnlock:
		p.post(w, r, locker)
	case p.ForceUnlock:
		h.Set("Allow", "GET, HEAD, POST")
		refuse(w, http.StatusMethodNotAllowed, "")
	default:
		h.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "")
	}
}

// answersFor says whether a request that names this host is for the page.
func (p *lockPage) answersFor(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return p.Hosts == nil || slices.ContainsFunc(p.Hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(strings.Trim(allowed, "[]"), name)
	})
}

func refuse(w http.ResponseWriter, status int, detail string) {
	(&guard.Refusal{Status: status, Detail: detail}).Write(w)
}

// answer writes a report. Its look-up may have another status than the rest.
func (p *lockPage) answer(w http.ResponseWriter, r *http.Request, report *report, status int) {
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
		shown := visible.JSON(body.Bytes())
		body.Reset()
		body.Write(shown)
	} else {
		err = page{report}.render(&body)
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

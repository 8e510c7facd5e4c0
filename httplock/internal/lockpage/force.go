package lockpage

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/core"
)

// post frees a lock.
func (p *lockPage) post(w http.ResponseWriter, r *http.Request, locker *core.Locker) {
	if isCrossOrigin(r) {
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
		slog.WarnContext(context.WithoutCancel(r.Context()), "latchkey: a lock was freed from the lock page",
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
		setNote(w, noteOf(v.key, v.outcome), 60)
		w.Header().Set("Location", v.link())
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.answer(w, r, p.report(r.Context(), locker, v), status)
}

// isCrossOrigin reports whether a browser sent the request for a page of another origin. net/http's own
// CrossOriginProtection decides in the same way, and needs Go 1.25.
func isCrossOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "": // an older browser, a host without TLS, or no browser
		origin := r.Header.Get("Origin")
		u, err := url.Parse(origin)
		return origin != "" && (err != nil || u.Host != r.Host)
	default:
		return true
	}
}

// Outcomes of a POST.
const (
	freed   = "freed"
	free    = "free"    // it was already
	changed = "changed" // the holder is another one than the request says
	unsure  = "unsure"  // Redis has not confirmed
)

// noteCookie says once, on the page to which a POST leads, what has come of it. A link cannot set it.
const noteCookie = "latchkey_outcome"

func setNote(w http.ResponseWriter, note string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: noteCookie, Value: note, MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

func noteOf(key, outcome string) string {
	return fmt.Sprintf("%s-%x", outcome, sha256.Sum256([]byte(key)))
}

// takeNote returns the outcome of the POST before for a key, and forgets it; "" if there is none.
func takeNote(w http.ResponseWriter, r *http.Request, key string) (outcome string) {
	note, err := r.Cookie(noteCookie)
	if err != nil {
		return ""
	}
	setNote(w, "", -1)
	if outcome, _, _ = strings.Cut(note.Value, "-"); (outcome == freed || outcome == free) && note.Value == noteOf(key, outcome) {
		return outcome
	}
	return ""
}

// force frees a lock if owner has it, or evicts that holder of several. It inspects the lock first,
// to find out whether Redis can be asked at all.
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

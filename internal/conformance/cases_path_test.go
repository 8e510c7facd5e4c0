package conformance_test

import (
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// wildcard is the key of a wildcard, which echo calls "*" whatever its name.
func (h *harness) wildcard() keyfunc.Func[keyfunc.Request] {
	if strings.HasPrefix(h.framework.name, "echo") {
		return keyfunc.Named("path", keyfunc.Param("*"))
	}
	return keyfunc.Param("path")
}

// wantRefused checks that a request for a path is refused with 400; the mux of net/http cleans
// some paths itself, and sends the client to the clean one.
func (h *harness) wantRefused(server http.Handler, path string) {
	h.Helper()
	w := send(server, "POST", path)
	if h.framework.name == "net/http" && w.Code/100 == 3 && !strings.Contains(path, "%") {
		return
	}
	h.wantProblem(w, http.StatusBadRequest, "secret")
}

var pathCases = []conformanceCase{
	{"plain values are taken as they are, however a client has to escape them", func(h *harness) {
		server := func(want string) http.Handler {
			return h.build(post("/users/{user}/x", byParam("user"), h.wantsHeld(keyfunc.Key("user", want))))
		}
		for sent, want := range map[string]string{
			"ann": "ann", "ann@example.com": "ann@example.com", "a%20b": "a b", "a+b": "a+b", "J%C3%B6rg": "Jörg", "100%25": "100%",
			"..x": "..x", "a;b=c": "a;b=c", "50%25off": "50%off",
		} {
			h.wantStatus(send(server(want), "POST", "/users/"+sent+"/x"), http.StatusOK)
		}
	}},
	{"two spellings of a value have one key, or one of them is refused", func(h *harness) {
		defer h.unlock(h.hold("user=ann"))
		server := h.build(post("/users/{user}/x", byParam("user", core.NoWait()), h.never()))
		for _, sent := range []string{"ann", "%61nn", "%61%6e%6E"} {
			w := send(server, "POST", "/users/"+sent+"/x")
			if w.Code != http.StatusConflict && w.Code != http.StatusBadRequest {
				h.Errorf("%s: status %d", sent, w.Code)
			}
		}
	}},
	{"a value with an escape in it is plain where the router decodes, refused where the handler may", func(h *harness) {
		if strings.HasPrefix(h.framework.name, "echo") {
			h.wantRefused(h.build(post("/users/{user}/x", byParam("user"), h.never())), "/users/%2561nn/x")
			return
		}
		server := h.build(post("/users/{user}/x", byParam("user"), h.wantsHeld("user=%61nn")))
		h.wantStatus(send(server, "POST", "/users/%2561nn/x"), http.StatusOK)
	}},
	{"Unescaped: two spellings of a value have one key", func(h *harness) {
		server := h.build(post("/users/{user}/x", byKey(keyfunc.Unescaped(keyfunc.Param("user"))), h.wantsHeld("user=ann@x")))
		for _, sent := range []string{"ann@x", "ann%40x", "%61nn%40x"} {
			h.wantStatus(send(server, "POST", "/users/"+sent+"/x"), http.StatusOK)
		}
	}},
	{"a dot segment in the place of a value: 400", func(h *harness) {
		server := h.build(post("/users/{user}/x", byParam("user"), h.never()))
		for _, sent := range []string{"%2e", "%2e%2e", ".%2E", "%2e;x", "..%5csecret"} {
			h.wantRefused(server, "/users/"+sent+"/x")
		}
		if h.framework.name == "gin" {
			return // its parameters cannot hold a slash
		}
		for _, sent := range []string{"%2e%2e%2Fsecret", "secret%2F%2e%2e", "secret%2F%2Fx"} {
			h.wantRefused(server, "/users/"+sent+"/x")
		}
	}},
	{"a wildcard is locked as one path", func(h *harness) {
		server := h.build(post("/files/{path...}", byKey(keyfunc.Path(h.wildcard())), h.wantsHeld("path=a/b.txt")))
		h.wantStatus(send(server, "POST", "/files/a/b.txt"), http.StatusOK)
		slash := "" // in front of it, as the handler has it
		if h.framework.name == "gin" {
			slash = "/"
		}
		server = h.build(post("/files/{path...}", byKey(h.wildcard()), h.wantsHeld("path="+slash+"a/b.txt")))
		h.wantStatus(send(server, "POST", "/files/a/b.txt"), http.StatusOK)
	}},
	{"a wildcard with empty or dot segments, escaped or not: 400", func(h *harness) {
		server := h.build(post("/files/{path...}", byKey(h.wildcard()), h.never()))
		for _, sent := range []string{
			"a//b", "/a", "a/", "a/./b", "a/../secret", "../secret", "..", ".", "a/%2e/b", "a/%2e%2e/secret", "%2E%2E/secret", "a%2F%2Fb", "%2Fa", "a%2F",
			"a%2F..%2Fsecret", "a/..;x/secret", "a/..%5csecret",
		} {
			h.wantRefused(server, "/files/"+sent)
		}
	}},
	{"Path: all spellings of a path have one key", func(h *harness) {
		defer h.unlock(h.hold("path=a/b"))
		server := h.build(post("/files/{path...}", byKey(keyfunc.Path(h.wildcard()), core.NoWait()), h.never()))
		for _, sent := range []string{"a/b", "a//b", "a/b/", "a/./b", "x/../a/b", "a%2Fb", "%61/b", "a/%2e/b", "x/%2e%2e/a/b", "a/x%2F..%2Fb", "/a/b"} {
			w := send(server, "POST", "/files/"+sent)
			if redirected := h.framework.name == "net/http" && w.Code/100 == 3; w.Code != http.StatusConflict && !redirected {
				h.Errorf("%s: status %d", sent, w.Code)
			}
		}
		for _, sent := range []string{"..", "%2e%2e/a/b", "a/..%2F..%2Fb", "%2e/", "a/..;/b", "a/..%5csecret"} {
			h.wantRefused(server, "/files/"+sent)
		}
	}},
	{"a dot segment behind the value leads a gateway elsewhere: 400", func(h *harness) {
		pattern := "/orders/{orderID}/{path...}"
		ways := byEveryWay("orderID")
		ways["Path"] = guarding{key: keyfunc.Path(keyfunc.Param("orderID"))}
		ways["Unescaped"] = guarding{key: keyfunc.Unescaped(keyfunc.Param("orderID"))}
		ways["Join"] = guarding{key: keyfunc.Join(keyfunc.Param("orderID"), keyfunc.Path(h.wildcard()))}
		for way, g := range ways {
			server := h.build(post(pattern, []guarding{g}, h.never()))
			h.log.reset()
			for _, sent := range []string{"42/%2e%2e/43/pay", "42/../43/pay", "42/x/%2E%2e/..%2F43/pay", "42/..;/43/pay", "42/..%5c43/pay"} {
				h.wantRefused(server, "/orders/"+sent)
			}
			if h.log.count("empty or dot segments") == 0 {
				h.Errorf("%s: the log does not say why", way)
			}
		}
		twice := byKey(keyfunc.Join(keyfunc.Path(h.wildcard()), keyfunc.Path(h.wildcard()))) // it counts once
		h.wantRefused(h.build(post(pattern, twice, h.never())), "/orders/%2e%2e/a/%2e%2e/b")
		server := h.build(post(pattern, byParam("orderID"), h.wantsHeld("orderID=42")))
		h.wantStatus(send(server, "POST", "/orders/42/..43/.pay"), http.StatusOK)
	}},
}

package readme

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// anOrder is the key of each order that a snippet is about.
var anOrder = regexp.MustCompile(`^orderID=[0-9]*$`)

// The ways in which snippets name a lock: by a part, or by the whole key.
var (
	byName = regexp.MustCompile(`\b(?:ByParam|ByQuery|ByPayload|keyfunc\.Key)\("([^"]+)"`)
	byKey  = regexp.MustCompile(`\b(?:Lock|TryLock|Do|Inspect|ForceUnlock|getLock|Hold|Lose|fmt\.Sprint)\((?:[\w.()]+, )*"([^"]+)"`)
)

// otherSpelling is a field called otherwise, which makes another key unless it is named.
var (
	otherSpelling = regexp.MustCompile(`(?i)["{.]order[_-]id`)
	named         = regexp.MustCompile(`keyfunc\.Named\("orderID", .*`)
)

// Whoever copies two snippets has two locks that exclude each other: one order has one key in
// all of them.
func TestSnippetsOfOneResourceHaveOneKey(t *testing.T) {
	found := 0
	check := func(where, snippet string) {
		orders, wrong := keysOfOrders(snippet)
		found += orders
		for _, key := range wrong {
			t.Errorf(`%s: a snippet locks the order by %q; want "orderID=42" as everywhere`, where, key)
		}
	}
	for page, text := range readPages(t) {
		for _, block := range blocksOf(text) {
			check(page, block)
		}
	}
	pages := found
	eachGoSnippet(t, check)
	if pages < 30 || found < pages+20 {
		t.Errorf("%d snippets of pages and %d of Go lock an order; is the test looking in the right place?", pages, found-pages)
	}
}

// Without this the test above could pass because it sees nothing.
func TestOtherKeysOfTheOrderAreSeen(t *testing.T) {
	for snippet, want := range map[string]string{
		`mux.Use(asynqlock.ByPayload("orderID"))`:                                "",
		`asynqlock.By(keyfunc.Named("orderID", keyfunc.Payload("order_id")))`:    "",
		`mux.Use(asynqlock.ByPayload("order_id"))`:                               "order_id=42",
		`router.Use(ginlock.ByParam("orderId"))`:                                 "orderId=42",
		`locker.Lock(ctx, "order:42")`:                                           "order:42",
		`locktest.Hold(t, locker, "order:42")`:                                   "order:42",
		"OrderID string `json:\"order_id\"`":                                     `"order_id`,
		`keyfunc.Int(keyfunc.Payload("order_id"))`:                               `"order_id`,
		`locks by a field, such as "order_id" or "order.id"; the key has a name`: `"order_id`,
		`ByTemplate("{type}:{payload.order_id}")`:                                ".order_id",
	} {
		_, wrong := keysOfOrders(snippet)
		if strings.Join(wrong[:min(1, len(wrong))], "") != want {
			t.Errorf("%s: wrong keys are %q, want %q first", snippet, wrong, want)
		}
	}
}

// keysOfOrders counts the keys of orders in a snippet, and returns those that are of another form.
func keysOfOrders(snippet string) (orders int, wrong []string) {
	var keys []string
	for _, m := range byName.FindAllStringSubmatch(snippet, -1) {
		keys = append(keys, keyfunc.Key(m[1], 42))
	}
	for _, m := range byKey.FindAllStringSubmatch(snippet, -1) {
		keys = append(keys, strings.TrimPrefix(m[1], "lock:"))
	}
	for _, key := range keys {
		if !strings.HasPrefix(strings.ToLower(key), "order") {
			continue
		}
		orders++
		if !anOrder.MatchString(key) {
			wrong = append(wrong, key)
		}
	}
	return orders, append(wrong, otherSpelling.FindAllString(named.ReplaceAllString(snippet, ""), -1)...)
}

// blocksOf returns the code blocks of a page, of diffs what is new.
func blocksOf(text string) (blocks []string) {
	parts := strings.Split(text, "\n```")
	for i := 1; i < len(parts); i += 2 {
		language, block, _ := strings.Cut(parts[i], "\n")
		if language == "diff" {
			block = regexp.MustCompile(`(?m)^-.*$`).ReplaceAllString(block, "")
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// eachGoSnippet visits what a user reads of the Go: doc comments, Examples, and the programs
// in examples.
func eachGoSnippet(t *testing.T, visit func(where, snippet string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		where, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		where = filepath.ToSlash(where)
		if entry.IsDir() {
			hidden := where != "." && strings.HasPrefix(entry.Name(), ".")
			if hidden || entry.Name() == "internal" || where == "benchmarks" {
				return fs.SkipDir
			}
			return nil
		}
		example := strings.HasPrefix(entry.Name(), "example")
		if filepath.Ext(where) != ".go" || strings.HasSuffix(where, "_test.go") && !example {
			return nil
		}
		if example || strings.HasPrefix(where, "examples/") {
			text, err := os.ReadFile(file)
			visit(where, string(text))
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, comment := range parsed.Comments {
			visit(where, comment.Text())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

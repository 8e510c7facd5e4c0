package readme

import (
	"regexp"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// theOrder is the key of the order that README and docs speak of.
const theOrder = "orderID=42"

// The ways in which snippets name a lock: by a part, or by the whole key.
var (
	byName = regexp.MustCompile(`\b(?:ByParam|ByQuery|ByPayload|keyfunc\.Key)\("([^"]+)"`)
	byKey  = regexp.MustCompile(`\b(?:Lock|TryLock|Do|Inspect|ForceUnlock|getLock)\((?:[\w.()]+, )?"([^"]+)"`)
)

// Whoever copies two snippets has two locks that exclude each other: one order has one key in
// all of them.
func TestSnippetsOfOneResourceHaveOneKey(t *testing.T) {
	found := 0
	for page, text := range readPages(t) {
		for _, block := range blocksOf(text) {
			var keys []string
			for _, m := range byName.FindAllStringSubmatch(block, -1) {
				keys = append(keys, keyfunc.Key(m[1], 42))
			}
			for _, m := range byKey.FindAllStringSubmatch(block, -1) {
				keys = append(keys, strings.TrimPrefix(m[1], "lock:"))
			}
			for _, key := range keys {
				if !strings.Contains(strings.ToLower(key), "order") {
					continue
				}
				found++
				if key != theOrder {
					t.Errorf("%s: a snippet locks the order by %q; want %q as everywhere:\n%s", page, key, theOrder, block)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d snippets lock an order; is the test looking in the right place?", found)
	}
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

package readme

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The README in its two languages.
const (
	english = "README.md"
	chinese = "README.zh-CN.md"
)

func TestLanguagesHaveTheSameOutline(t *testing.T) {
	pages := readPages(t)
	text, err := os.ReadFile(filepath.Join(root, chinese))
	if err != nil {
		t.Fatal(err)
	}
	pages[chinese] = string(text)
	if err := compareOutlines(pages[english], pages[chinese]); err != nil {
		t.Error(err)
	}
	_, errs := follow(chinese, pages[chinese], pages)
	for _, err := range errs {
		t.Error(err)
	}
	for from, to := range map[string]string{english: chinese, chinese: english} {
		if !strings.Contains(pages[from], "]("+to+")") {
			t.Errorf("%s does not link to %s", from, to)
		}
	}
}

// Without this the test above could pass because it sees nothing.
func TestDifferencesOfOutlinesAreSeen(t *testing.T) {
	const (
		en = "# latchkey\n\nText.\n\n## Options\n\n```go\nf() // comment\n```\n\n### End of `f`\n\nText.\n"
		zh = "# latchkey\n\n文字。\n文字。\n\n## 选项\n\n```go\nf() // comment\n```\n\n### `f` 的结尾\n"
	)
	if err := compareOutlines(en, zh); err != nil {
		t.Errorf("error of pages with one outline: %v", err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"heading gone":           {"## 选项\n", "", "README.md:5: ## Options; README.zh-CN.md:7: ```go"},
		"heading more":           {"文字。\n\n", "文字。\n\n## 新\n", "README.md:7: ```go; README.zh-CN.md:7: ## 选项"},
		"last heading gone":      {"### `f` 的结尾\n", "", "README.md:11: ### End of `f`; README.zh-CN.md: its end"},
		"last heading more":      {"的结尾\n", "的结尾\n\n## 新\n", "README.md: its end; README.zh-CN.md:14: ## 新"},
		"another level":          {"## 选项", "### 选项", "README.md:5: ## Options; README.zh-CN.md:6: ### 选项"},
		"code in a heading":      {"`f`", "`g`", "README.md:11: ### End of `f`; README.zh-CN.md:12: ### `g` 的结尾"},
		"code block gone":        {"```go\nf() // comment\n```\n", "", "README.md:7: ```go; README.zh-CN.md:9: ### `f` 的结尾"},
		"code block more":        {"文字。\n\n", "```go\n```\n\n", "README.md:5: ## Options; README.zh-CN.md:4: ```go"},
		"line of code":           {"// comment", "// 注释", "README.md:8: f() // comment; README.zh-CN.md:9: f() // 注释"},
		"language of code":       {"```go", "```text", "README.md:7: ```go; README.zh-CN.md:8: ```text"},
		"code that does not end": {"comment\n```\n", "comment\n", "README.md:9: ```; README.zh-CN.md:10: "},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(zh, c.old) != 1 {
				t.Fatalf("%q is in the page %d times, want 1", c.old, strings.Count(zh, c.old))
			}
			err := compareOutlines(en, strings.Replace(zh, c.old, c.new, 1))
			if err == nil || err.Error() != c.want {
				t.Errorf("the error is %v, want\n%s", err, c.want)
			}
		})
	}
}

// outlineLine is a heading, or a line of a code block with its fences.
type outlineLine struct {
	place string // in which page and line it is
	text  string
	same  string // the part of text that no language changes
}

// outline returns a page's headings and code blocks.
func outline(page, text string) (lines []outlineLine) {
	fenced(text, func(number int, line, language string) {
		same := line
		if language == "" {
			if !heading.MatchString(line) {
				return
			}
			level, title, _ := strings.Cut(line, " ")
			same = level + strings.Join(quoted.FindAllString(title, -1), "")
		}
		lines = append(lines, outlineLine{fmt.Sprintf("%s:%d", page, number), line, same})
	})
	return append(lines, outlineLine{page, "its end", "its end"})
}

// compareOutlines says where the outline of the Chinese page parts from that of the English one.
func compareOutlines(en, zh string) error {
	e, z := outline(english, en), outline(chinese, zh)
	for i := range min(len(e), len(z)) {
		if e[i].same != z[i].same {
			return fmt.Errorf("%s: %s; %s: %s", e[i].place, e[i].text, z[i].place, z[i].text)
		}
	}
	return nil
}

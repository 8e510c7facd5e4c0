package readme

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The README in its two languages.
const (
	english = "README.md"
	chinese = "README.zh-CN.md"
)

// properNames are headings that are the same in both.
var properNames = []string{"latchkey"}

func TestLanguagesSayTheSame(t *testing.T) {
	pages := readPages(t)
	text, err := os.ReadFile(filepath.Join(root, chinese))
	if err != nil {
		t.Fatal(err)
	}
	pages[chinese] = string(text)
	for _, err := range compareLanguages(pages[english], pages[chinese]) {
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
func TestDifferencesOfLanguagesAreSeen(t *testing.T) {
	const (
		en = "# latchkey\n\n[other](README.zh-CN.md) ![chart](a.svg) <img src=\"b.svg\">\n\n" +
			"## Options\n\nA call of `f()`\ntakes 12,000 µs, see [below](#end) and [docs](docs/a.md#x).\n\n" +
			"| option | default | |\n|---|---|---|\n| `Wait(d)` | 3 s | `x` |\n| `Fix \\| d` | | a |\n\n" +
			"- one\n- two `h`\n  lines\n\n```go\nf() // comment\n```\n\n### End\n\nText.\n"
		zh = "# latchkey\n\n[另一](README.md) ![图](a.svg) <img src=\"b.svg\">\n\n" +
			"## 选项\n\n见[文档](docs/a.md#x)和[下文](#结尾)：调用 `f()` 需要 12,000 µs。\n\n" +
			"| 选项 | 默认 | |\n|---|---|---|\n| `Wait(d)` | 3 秒 | `x` |\n| `Fix \\| d` | | 甲 |\n\n" +
			"- 一\n- 二：`h` 即 `h`\n\n```go\nf() // comment\n```\n\n### 结尾\n\n文字。\n"
		top     = `README.zh-CN.md:3, under "latchkey" (README.md:3, "latchkey"): `
		options = `README.zh-CN.md:%d, under "选项" (README.md:%d, "Options"): `
		end     = `README.zh-CN.md:%d, under "结尾" (README.md:%d, "End"): `
	)
	if errs := compareLanguages(en, zh); len(errs) != 0 {
		t.Errorf("errors in pages that say the same: %v", errs)
	}
	at := func(format string, zh, en int) string { return fmt.Sprintf(format, zh, en) }
	for name, c := range map[string]struct{ old, new, want string }{
		"heading more": {"- 一", "### 更多\n\n- 一",
			`README.zh-CN.md has 4 headings, README.md has 3; the first sections that differ: "选项" (line 5) and "Options" (line 5)`},
		"heading gone": {"### 结尾\n\n", "",
			`README.zh-CN.md has 2 headings, README.md has 3; the first sections that differ: "选项" (line 5) and "Options" (line 5)`},
		"last section gone": {"### 结尾\n\n文字。\n", "",
			`README.zh-CN.md has 2 headings, README.md has 3; README.md:23, "End", has no counterpart`},
		"section more": {"文字。\n", "文字。\n\n## 新\n",
			`README.zh-CN.md has 4 headings, README.md has 3; README.zh-CN.md:25, "新", has no counterpart`},
		"another level": {"### 结尾", "## 结尾",
			`README.zh-CN.md:21: the heading "结尾" is of level 2, "End" (README.md:23) of level 3`},
		"English heading": {"## 选项", "## Options",
			`README.zh-CN.md:5, under "Options" (README.md:5, "Options"): the heading is not translated`},
		"English paragraph": {"文字。", "Text.", at(end, 23, 25) + "the paragraph is not translated"},
		"English item":      {"- 一", "- one", at(options, 14, 15) + "the list item is not translated"},
		"figure of a heading": {"## 选项", "## 5 选项",
			`README.zh-CN.md:5, under "5 选项" (README.md:5, "Options"): the heading has the figures [5], README.md has not`},

		"paragraph gone": {"文字。\n", "",
			at(end, 21, 23) + "contents: nothing; in README.md: 1 paragraph; the first that differs: paragraph at README.md:25"},
		"paragraph more": {"文字。", "文字。\n\n文字。",
			at(end, 21, 23) + "contents: 2 paragraphs; in README.md: 1 paragraph; the first that differs: paragraph at README.zh-CN.md:25"},
		"item gone": {"- 二：`h` 即 `h`\n", "",
			at(options, 5, 5) + "contents: 1 paragraph, 1 table, 1 list item, 1 code block; " +
				"in README.md: 1 paragraph, 1 table, 2 list items, 1 code block; the first that differs: list item at README.md:16"},
		"no item": {"- 一\n", "一\n\n",
			at(options, 5, 5) + "contents: 2 paragraphs, 1 table, 1 list item, 1 code block; " +
				"in README.md: 1 paragraph, 1 table, 2 list items, 1 code block; the first that differs: list item at README.md:15"},

		"row gone": {"| `Wait(d)` | 3 秒 | `x` |\n", "",
			at(options, 9, 10) + "the table has 1 row, in README.md 2; the first that differs: row 1 (`Wait(d)`)"},
		"row more": {"| `Fix", "| `New` | | |\n| `Fix",
			at(options, 9, 10) + "the table has 3 rows, in README.md 2; the first that differs: row 2 (`New`)"},
		"last row gone": {"| `Fix \\| d` | | 甲 |\n", "",
			at(options, 9, 10) + "the table has 1 row, in README.md 2; the first that differs: row 2 (`Fix \\| d`)"},
		"column gone": {"| 3 秒 | `x` |", "| 3 秒 |",
			at(options, 11, 12) + "row 1 (`Wait(d)`) of the table has 2 columns, in README.md 3"},
		"code span of a cell": {"| `x` |", "| `y` |",
			at(options, 11, 12) + "row 1 (`Wait(d)`), column 3 of the table has the code spans [`y`], in README.md [`x`]"},
		"figure of a cell": {"3 秒", "5 秒",
			at(options, 11, 12) + "row 1 (`Wait(d)`), column 2 of the table has the figures [5], in README.md [3]"},
		"line under the head": {"|---|---|---|", "|---|---|",
			at(options, 10, 11) + "row 0 (---) of the table has 2 columns, in README.md 3"},
		"empty cell": {"甲", "",
			at(options, 12, 13) + "row 2 (`Fix \\| d`), column 3 of the table is empty, in README.md not"},
		"filled cell": {"| `Fix \\| d` | |", "| `Fix \\| d` | 乙 |",
			at(options, 12, 13) + "row 2 (`Fix \\| d`), column 2 of the table is filled, in README.md not"},
		"empty cell of the head": {"| 默认 |", "| |",
			at(options, 9, 10) + "the head, column 2 of the table is empty, in README.md not"},

		"comment in code": {"// comment", "// 注释",
			at(options, 18, 20) + `the code block has "f() // 注释", in README.md "f() // comment"`},
		"language of code": {"```go", "```text",
			at(options, 17, 19) + "the code block has \"```text\", in README.md \"```go\""},
		"line of code gone": {"f() // comment\n", "",
			at(options, 18, 20) + "the code block has \"```\", in README.md \"f() // comment\""},
		"last line of code gone": {"f() // comment\n```\n", "f() // comment\n",
			`README.zh-CN.md: the code block of line 17 is not closed`},

		"code span": {"`f()`", "`g()`", at(options, 7, 7) + "the paragraph has the code spans [`g()`], in README.md [`f()`]"},
		"figure":    {"12,000", "12000", at(options, 7, 7) + "the paragraph has the figures [12000], in README.md [12,000]"},
		"link": {"docs/a.md#x", "docs/b.md#x",
			at(options, 7, 7) + "the paragraph has the links [docs/b.md#x], in README.md [docs/a.md#x]"},
		"link twice": {"需要", "[需](docs/a.md#x)要",
			at(options, 7, 7) + "the paragraph has the links [docs/a.md#x], README.md has not"},
		"anchor gone": {"[下文](#结尾)", "下文",
			at(options, 7, 7) + "the paragraph lacks the links [#]"},
		"image": {"b.svg", "c.svg",
			top + "the paragraph has the links [c.svg], in README.md [b.svg]"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(zh, c.old) != 1 {
				t.Fatalf("%q is in the page %d times, want 1", c.old, strings.Count(zh, c.old))
			}
			errs := compareLanguages(en, strings.Replace(zh, c.old, c.new, 1))
			if len(errs) != 1 || errs[0].Error() != c.want {
				t.Errorf("errors are %q, want\n%q", errs, c.want)
			}
		})
	}
}

// section is a heading and what follows it.
type section struct {
	level int // 0: what stands before the first heading
	head  part
	parts []part
}

// part is a piece of a page.
type part struct {
	kind  string
	line  int
	lines []string
}

const (
	paragraph = "paragraph"
	table     = "table"
	item      = "list item"
	code      = "code block"
)

var marker = regexp.MustCompile(`^ *([-*+]|[0-9]+\.) `)

// sections takes a page apart.
func sections(text string) (all []section, open int) {
	all = []section{{head: part{kind: "heading", line: 1}}}
	last := "" // the kind of part that goes on, if the next line is of that kind
	open = fenced(text, func(number int, line, language string) {
		kind := paragraph
		m := heading.FindStringSubmatch(line)
		switch {
		case language != "":
			kind = code
		case strings.TrimSpace(line) == "":
			last = ""
			return
		case m != nil:
			level := strings.IndexByte(line, ' ')
			all = append(all, section{level: level, head: part{"heading", number, []string{m[1]}}})
			last = ""
			return
		case strings.HasPrefix(line, "|"):
			kind = table
		case marker.MatchString(line):
			kind, last = item, ""
		case last == item:
			kind = item
		}
		parts := &all[len(all)-1].parts
		if kind != last {
			*parts = append(*parts, part{kind: kind, line: number})
		}
		p := &(*parts)[len(*parts)-1]
		p.lines = append(p.lines, line)
		last = kind
	})
	return all, open
}

// compareLanguages returns where the Chinese page does not say what the English one
// does.
func compareLanguages(en, zh string) (errs []error) {
	e, _ := sections(en) // a block that is not closed is for TestGoBlocksCompile
	z, open := sections(zh)
	if open > 0 {
		return []error{fmt.Errorf("%s: the code block of line %d is not closed", chinese, open)}
	}
	if len(e) != len(z) {
		return []error{fmt.Errorf("%s has %d headings, %s has %d; %s", chinese, len(z)-1, english, len(e)-1, partingOf(e, z))}
	}
	for i := range e {
		if e[i].level != z[i].level {
			return []error{fmt.Errorf("%s:%d: the heading %q is of level %d, %q (%s:%d) of level %d",
				chinese, z[i].head.line, z[i].title(), z[i].level, e[i].title(), english, e[i].head.line, e[i].level)}
		}
		for _, d := range compareSections(e[i], z[i]) {
			errs = append(errs, fmt.Errorf("%s:%d, under %q (%s:%d, %q): %s",
				chinese, d.zh, z[i].title(), english, d.en, e[i].title(), d.what))
		}
	}
	return errs
}

// partingOf says from where on sections are not those of the other page.
func partingOf(e, z []section) string {
	for i := range min(len(e), len(z)) {
		if e[i].level != z[i].level || len(compareSections(e[i], z[i])) > 0 {
			return fmt.Sprintf("the first sections that differ: %q (line %d) and %q (line %d)",
				z[i].title(), z[i].head.line, e[i].title(), e[i].head.line)
		}
	}
	page, more := english, e
	if len(z) > len(e) {
		page, more = chinese, z
	}
	first := more[min(len(e), len(z))]
	return fmt.Sprintf("%s:%d, %q, has no counterpart", page, first.head.line, first.title())
}

func (s section) title() string { return strings.Join(s.head.lines, "") }

func (s section) kinds() (kinds []string) {
	for _, p := range s.parts {
		kinds = append(kinds, p.kind)
	}
	return kinds
}

// contents is how many parts of which kind s has.
func (s section) contents() string {
	var out []string
	for _, kind := range []string{paragraph, table, item, code} {
		n := 0
		for _, p := range s.parts {
			if p.kind == kind {
				n++
			}
		}
		if n > 0 {
			out = append(out, counted(n, kind))
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// difference is what differs between a line of one page and one of the other.
type difference struct {
	en, zh int
	what   string
}

func compareSections(e, z section) []difference {
	found := compareParts(e.head, z.head)
	if slices.Equal(e.kinds(), z.kinds()) {
		for i := range e.parts {
			found = append(found, compareParts(e.parts[i], z.parts[i])...)
		}
		return found
	}
	first := 0
	for first < min(len(e.parts), len(z.parts)) && e.parts[first].kind == z.parts[first].kind &&
		len(compareParts(e.parts[first], z.parts[first])) == 0 {
		first++
	}
	page, parts := english, e.parts
	if first == len(parts) {
		page, parts = chinese, z.parts
	}
	return append(found, difference{e.head.line, z.head.line, fmt.Sprintf(
		"contents: %s; in %s: %s; the first that differs: %s at %s:%d",
		z.contents(), english, e.contents(), parts[first].kind, page, parts[first].line)})
}

// compareParts compares parts of one kind.
func compareParts(e, z part) (found []difference) {
	switch e.kind {
	case code:
		return compareCode(e, z)
	case table:
		return compareTables(e, z)
	}
	if !translated(e.text(), z.text()) {
		found = append(found, difference{e.line, z.line, "the " + z.kind + " is not translated"})
	}
	for _, what := range compareTexts(e.text(), z.text()) {
		found = append(found, difference{e.line, z.line, "the " + z.kind + " " + what})
	}
	return found
}

func (p part) text() string { return strings.Join(p.lines, " ") }

func compareCode(e, z part) []difference {
	for i := range min(len(e.lines), len(z.lines)) {
		if e.lines[i] != z.lines[i] {
			return []difference{{e.line + i, z.line + i,
				fmt.Sprintf("the code block has %q, in %s %q", z.lines[i], english, e.lines[i])}}
		}
	}
	return nil // of two that differ in length, the end of the shorter has differed
}

func compareTables(e, z part) (found []difference) {
	rows := min(len(e.lines), len(z.lines))
	if len(e.lines) != len(z.lines) {
		first := 0
		for first < rows && len(compareTexts(e.lines[first], z.lines[first])) == 0 {
			first++
		}
		longer := e
		if len(z.lines) > rows {
			longer = z
		}
		return []difference{{e.line, z.line, fmt.Sprintf("the table has %s, in %s %d; the first that differs: %s",
			counted(len(z.lines)-2, "row"), english, len(e.lines)-2, rowOf(longer, first))}}
	}
	for i := range rows {
		differ := func(format string, args ...any) {
			found = append(found, difference{e.line + i, z.line + i, rowOf(z, i) + fmt.Sprintf(format, args...)})
		}
		ours, theirs := cells(z.lines[i]), cells(e.lines[i])
		if len(ours) != len(theirs) {
			differ(" of the table has %s, in %s %d", counted(len(ours), "column"), english, len(theirs))
			continue
		}
		for c := range ours {
			switch {
			case ours[c] == "" && theirs[c] != "":
				differ(", column %d of the table is empty, in %s not", c+1, english)
			case ours[c] != "" && theirs[c] == "":
				differ(", column %d of the table is filled, in %s not", c+1, english)
			}
			for _, what := range compareTexts(theirs[c], ours[c]) {
				differ(", column %d of the table %s", c+1, what)
			}
		}
	}
	return found
}

// rowOf names the row in a line of a table by its number and its first cell.
func rowOf(p part, line int) string {
	if line == 0 {
		return "the head"
	}
	return fmt.Sprintf("row %d (%s)", line-1, cells(p.lines[line])[0])
}

// cells returns the cells of a row.
func cells(row string) []string {
	const bar = "\x00"
	row = strings.Trim(strings.ReplaceAll(strings.TrimSpace(row), `\|`, bar), "|")
	var out []string
	for cell := range strings.SplitSeq(row, "|") {
		out = append(out, strings.ReplaceAll(strings.TrimSpace(cell), bar, `\|`))
	}
	return out
}

var (
	attribute = regexp.MustCompile(`\b(?:href|src|srcset)="([^"]*)"`)
	tag       = regexp.MustCompile(`<[^>]*>`)
	figure    = regexp.MustCompile(`[0-9]+(?:[-.,:/][0-9]+)*`)
)

// compareTexts says in what z differs from e of that which no language changes.
func compareTexts(e, z string) (found []string) {
	differ := func(what string, ours, theirs []string) {
		more, missing := without(ours, theirs), without(theirs, ours)
		switch {
		case len(more) > 0 && len(missing) > 0:
			found = append(found, fmt.Sprintf("has the %s %v, in %s %v", what, more, english, missing))
		case len(more) > 0:
			found = append(found, fmt.Sprintf("has the %s %v, %s has not", what, more, english))
		case len(missing) > 0:
			found = append(found, fmt.Sprintf("lacks the %s %v", what, missing))
		}
	}
	spans := func(text string) []string { return set(quoted.FindAllString(text, -1)) }
	figures := func(text string) []string { return set(figure.FindAllString(words(text), -1)) }
	differ("code spans", spans(z), spans(e))
	differ("figures", figures(z), figures(e))
	differ("links", targets(z, english), targets(e, chinese))
	return found
}

// translated says whether z is Chinese, as far as e has words.
func translated(e, z string) bool {
	return strings.ContainsFunc(z, func(r rune) bool { return unicode.Is(unicode.Han, r) }) ||
		!strings.ContainsFunc(words(e), unicode.IsLetter) || e == z && slices.Contains(properNames, z)
}

// words is a text without code, link targets and tags.
func words(text string) string {
	return tag.ReplaceAllString(link.ReplaceAllString(quoted.ReplaceAllString(text, ""), "]"), "")
}

// targets returns where the links and images of a text lead; anchors in the page are
// all alike, and other is the page in the other language.
func targets(text, other string) []string {
	text = quoted.ReplaceAllString(text, "")
	var out []string
	for _, m := range append(link.FindAllStringSubmatch(text, -1), attribute.FindAllStringSubmatch(text, -1)...) {
		switch {
		case strings.HasPrefix(m[1], "#"):
			out = append(out, "#")
		case m[1] == other:
			out = append(out, "the other language")
		default:
			out = append(out, m[1])
		}
	}
	return out
}

// without returns what is in a and not, or less often, in b.
func without(a, b []string) []string {
	b = slices.Clone(b)
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool {
		i := slices.Index(b, s)
		if i >= 0 {
			b = slices.Delete(b, i, i+1)
		}
		return i >= 0
	})
}

func set(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

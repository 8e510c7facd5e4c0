package visible

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestJSONIsTheSameValue(t *testing.T) {
	const text = "a\u0085\u202e\u00a0\U000e0100é漢👍\x7f\n\"\u0301"
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]string{text: text}); err != nil {
		t.Fatal(err)
	}
	shown := JSON(line.Bytes())
	var got map[string]string
	if err := json.Unmarshal(shown, &got); err != nil || got[text] != text {
		t.Errorf("%q, %v", got, err)
	}
	for _, p := range Parts(string(shown)) {
		if p.Hidden && p.Text != "\n" && p.Text != "\x7f" {
			t.Errorf("%+q is hidden", p.Text)
		}
	}
	if !bytes.Contains(shown, []byte("é漢👍")) {
		t.Errorf("%s", shown)
	}
}

func TestWhatIsHidden(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"orderID=42, a b":                "orderID=42, a b",
		"שלום ñ 漢字 👍 ٣":                  "שלום ñ 漢字 👍 ٣",
		"cafe\u0301 हिन्दी":              "cafe\u0301 हिन्दी", // marks on letters
		"a\n\x00\x7f\u0085":              "a[\n][\x00][\x7f][\u0085]",
		"\xffa\xc3":                      "[\xff]a[\xc3]",
		"a\ufffdb":                       "a\ufffdb",
		"\u202e\u2066\u200b\ufeff\u00ad": "[\u202e][\u2066][\u200b][\ufeff][\u00ad]",
		"\u00a0\u2003\u3000\u1680\u2028": "[\u00a0][\u2003][\u3000][\u1680][\u2028]",
		"k\u2800\u2800held":              "k[\u2800][\u2800]held",
		"k\u3164\u115f\u1160\uffa0":      "k[\u3164][\u115f][\u1160][\uffa0]",
		"❤\ufe0f \U000e0100\u180b":       "❤[\ufe0f] [\U000e0100][\u180b]",
		"a\u034f\u17b4\U000e0041":        "a[\u034f][\u17b4][\U000e0041]",
		"\U00013441\U00016fe4\U0001d159": "[\U00013441][\U00016fe4][\U0001d159]",
		"\u0301a":                        "[\u0301]a",   // on what stands before the text
		"a \u0301b":                      "a [\u0301]b", // on nothing
		"a\u200b\u0301\u0302":            "a[\u200b][\u0301][\u0302]",
		"\u20e3 \u20dd":                  "[\u20e3] [\u20dd]",
		"a\u0301\u0302":                  "a\u0301\u0302",
	} {
		var got strings.Builder
		for _, p := range Parts(text) {
			if p.Hidden {
				got.WriteString("[" + p.Text + "]")
			} else {
				got.WriteString(p.Text)
			}
		}
		if got.String() != want {
			t.Errorf("%+q: %+q, want %+q", text, got.String(), want)
		}
	}
}

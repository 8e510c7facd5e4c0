package core

import "testing"

func TestTheHostNamesAProcess(t *testing.T) {
	for host, want := range map[string]string{
		"web-3":                  "web-3",
		"web-3.prod.example.com": "web-3",
		"shop-7c9f5d8b6c-x2kqz":  "c9f5d8b6c-x2kqz",
		"büro's pc":              "b_ro_s_pc",
		"":                       "unnamed",
		".example.com":           "unnamed",
	} {
		if got := hostPart(host); got != want {
			t.Errorf("%q is called %q, want %q", host, got, want)
		}
	}
}

package redistest

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestReadReply(t *testing.T) {
	for _, c := range []struct {
		raw  string
		kind byte
		text string
	}{
		{"+OK\r\n", '+', "OK"},
		{"-ERR no\r\n", '-', "ERR no"},
		{":-7\r\n", ':', "-7"},
		{"$5\r\na\r\nbc\r\n", '$', "a\r\nbc"},
		{"$0\r\n\r\n", '$', ""},
		{"$-1\r\n", '$', ""},
		{"*-1\r\n", '*', ""},
		{"*0\r\n", '*', ""},
		{"*2\r\n*2\r\n:1\r\n$1\r\nx\r\n+y\r\n", '*', "1"},
		{"_\r\n", '_', ""},
		{"#t\r\n", '#', "t"},
		{",1.5\r\n", ',', "1.5"},
		{"(123456789012345678901234567890\r\n", '(', "123456789012345678901234567890"},
		{"!7\r\nERR x\r\n\r\n", '!', "ERR x\r\n"},
		{"=7\r\ntxt:abc\r\n", '=', "txt:abc"},
		{"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n:2\r\n", '%', "a"},
		{"~1\r\n+a\r\n", '~', "a"},
		{">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n", '>', "message"},
		{"|1\r\n+ttl\r\n:3600\r\n*1\r\n:5\r\n", '*', "5"},
	} {
		r := bufio.NewReader(strings.NewReader(c.raw + "+next\r\n"))
		got, err := readReply(r)
		if err != nil || string(got.raw) != c.raw || got.kind != c.kind || got.text != c.text {
			t.Errorf("%q: %q %c %q, %v", c.raw, got.raw, got.kind, got.text, err)
		}
		if next, err := readReply(r); err != nil || next.text != "next" {
			t.Errorf("%q: after it %q, %v", c.raw, next.raw, err)
		}
		if _, err := readReply(r); err != io.EOF {
			t.Errorf("%q: at the end %v", c.raw, err)
		}
		for cut := 1; cut < len(c.raw); cut++ {
			if _, err := readReply(bufio.NewReader(strings.NewReader(c.raw[:cut]))); err != io.ErrUnexpectedEOF {
				t.Errorf("%q: %v", c.raw[:cut], err)
			}
		}
	}
}

func TestReadRequest(t *testing.T) {
	args := []string{"SET", "", "a\r\nb\x00"}
	raw := string(appendRequest(nil, args...))
	r := bufio.NewReader(strings.NewReader(raw + "PING  x\r\n"))
	got, gotArgs, err := readRequest(r)
	if err != nil || string(got) != raw || !slices.Equal(gotArgs, args) {
		t.Errorf("%q %q, %v", got, gotArgs, err)
	}
	got, gotArgs, err = readRequest(r)
	if err != nil || string(got) != "PING  x\r\n" || !slices.Equal(gotArgs, []string{"PING", "x"}) {
		t.Errorf("inline: %q %q, %v", got, gotArgs, err)
	}
	for cut := 1; cut < len(raw); cut++ {
		if _, _, err := readRequest(bufio.NewReader(strings.NewReader(raw[:cut]))); err != io.ErrUnexpectedEOF {
			t.Errorf("%q: %v", raw[:cut], err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n"))
	f.Add([]byte("%1\r\n+a\r\n|1\r\n+t\r\n:1\r\n_\r\n"))
	f.Add([]byte("$-1\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if reply, err := readReply(bufio.NewReader(bytes.NewReader(data))); err == nil {
			if !bytes.HasPrefix(data, reply.raw) {
				t.Errorf("read %q", reply.raw)
			}
			again, err := readReply(bufio.NewReader(bytes.NewReader(reply.raw)))
			if err != nil || again.text != reply.text || again.kind != reply.kind {
				t.Errorf("the same bytes read as %q and %q, %v", reply.text, again.text, err)
			}
		}
		if raw, args, err := readRequest(bufio.NewReader(bytes.NewReader(data))); err == nil {
			if !bytes.HasPrefix(data, raw) {
				t.Errorf("read %q", raw)
			}
			_, again, err := readRequest(bufio.NewReader(bytes.NewReader(appendRequest(nil, args...))))
			if err != nil || !slices.Equal(args, again) {
				t.Errorf("%q became %q, %v", args, again, err)
			}
		}
	})
}

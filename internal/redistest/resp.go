package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLength bounds a length that the wire names: Redis takes at most 512 MB.
const maxLength = 512 << 20

// reply is one value from Redis, in RESP2 or RESP3.
type reply struct {
	raw  []byte
	kind byte   // its type byte: '+', '-', ':', '$', '*', '>' …
	text string // the first scalar in it: of a push its name, of an error the message
}

// readReply reads one whole reply. It ends with io.EOF only between replies.
func readReply(r *bufio.Reader) (reply, error) {
	var out reply
	var err error
	out.kind, out.text, err = readValue(r, &out.raw)
	if err == io.EOF && len(out.raw) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return out, err
}

// readValue reads one value, appends its bytes to raw, and returns its type and
// its first scalar.
func readValue(r *bufio.Reader, raw *[]byte) (kind byte, text string, err error) {
	line, err := readLine(r, raw)
	if err != nil {
		return 0, "", err
	}
	kind, text = line[0], line[1:]
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return kind, text, nil
	case '$', '=', '!':
		n, err := parseLength(text)
		if err != nil || n < 0 {
			return kind, "", err
		}
		body, err := readBulk(r, n, raw)
		return kind, body, err
	case '*', '~', '>', '%', '|':
		n, err := parseLength(text)
		if err != nil {
			return kind, "", err
		}
		if kind == '%' || kind == '|' {
			n *= 2
		}
		first := ""
		for i := range n {
			_, text, err := readValue(r, raw)
			if err != nil {
				return kind, "", err
			}
			if i == 0 {
				first = text
			}
		}
		if kind == '|' { // an attribute stands before the value it describes
			return readValue(r, raw)
		}
		return kind, first, nil
	}
	return 0, "", fmt.Errorf("redistest: %q begins no RESP value", line)
}

// readRequest reads one command, as an array of bulk strings or inline. It ends
// with io.EOF only between requests.
func readRequest(r *bufio.Reader) (raw []byte, args []string, err error) {
	defer func() {
		if err == io.EOF && len(raw) > 0 {
			err = io.ErrUnexpectedEOF
		}
	}()
	line, err := readLine(r, &raw)
	if err != nil {
		return raw, nil, err
	}
	if line[0] != '*' {
		return raw, strings.Fields(line), nil
	}
	n, err := parseLength(line[1:])
	if err != nil {
		return raw, nil, err
	}
	for range n {
		line, err := readLine(r, &raw)
		if err != nil {
			return raw, nil, err
		}
		size, err := parseLength(line[1:])
		if err != nil {
			return raw, nil, err
		}
		if line[0] != '$' || size < 0 {
			return raw, nil, fmt.Errorf("redistest: %q begins no argument", line)
		}
		arg, err := readBulk(r, size, &raw)
		if err != nil {
			return raw, nil, err
		}
		args = append(args, arg)
	}
	return raw, args, nil
}

// readLine reads up to CRLF, and returns what stands before it: one byte at least.
func readLine(r *bufio.Reader, raw *[]byte) (string, error) {
	line, err := r.ReadBytes('\n')
	*raw = append(*raw, line...)
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(line), "\r\n")
	if text == "" {
		return "", fmt.Errorf("redistest: an empty line on the wire")
	}
	return text, nil
}

// readBulk reads n bytes and the CRLF after them.
func readBulk(r *bufio.Reader, n int, raw *[]byte) (string, error) {
	var body bytes.Buffer // grows with what comes, not with what was announced
	_, err := io.CopyN(&body, r, int64(n+2))
	*raw = append(*raw, body.Bytes()...)
	if err != nil {
		return "", err
	}
	text, ok := strings.CutSuffix(body.String(), "\r\n")
	if !ok {
		return "", fmt.Errorf("redistest: %d bytes announced, and more came", n)
	}
	return text, nil
}

func parseLength(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < -1 || n > maxLength {
		return 0, fmt.Errorf("redistest: %q is no length", s)
	}
	return n, nil
}

// appendRequest appends a command as an array of bulk strings.
func appendRequest(raw []byte, args ...string) []byte {
	raw = fmt.Appendf(raw, "*%d\r\n", len(args))
	for _, a := range args {
		raw = fmt.Appendf(raw, "$%d\r\n%s\r\n", len(a), a)
	}
	return raw
}

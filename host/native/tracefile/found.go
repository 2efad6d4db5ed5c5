package tracefile

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFound bounds what a sentence repeats of the trace, in bytes.
const maxFound = 40

// found is what was found, as it stands in the trace but for bytes that would
// break a line or a terminal, and cut if it is long.
func found(text []byte) string {
	cut := ""
	if len(text) > maxFound {
		n := maxFound
		for n > maxFound-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		text, cut = text[:n], "..."
	}
	return plainText(string(text)) + cut
}

// plainText escapes what is not printable.
func plainText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case strconv.IsPrint(r):
			b.WriteString(s[i : i+n])
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}

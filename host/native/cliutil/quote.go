package cliutil

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted bounds what Quote repeats of a found text, in bytes.
const maxQuoted = 60

// Quote puts s in double quotes, escapes what would break a line or a
// terminal, and shortens it so that it cannot bury the sentence around it.
func Quote(s string) string {
	if len(s) <= maxQuoted {
		return strconv.Quote(s)
	}
	cut := maxQuoted
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "..."
}

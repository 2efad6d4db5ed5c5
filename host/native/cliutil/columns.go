package cliutil

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Grouped spells x with so many decimals and commas between thousands, as
// Python's "{:,.2f}" does for two.
func Grouped(x float64, decimals int) string {
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	end := strings.IndexByte(s, '.')
	switch {
	case strings.ContainsAny(s, "NI"): // NaN and Inf
		return strings.ToLower(strings.TrimPrefix(s, "+"))
	case end < 0:
		end = len(s)
	}
	start := 0
	if s[0] == '-' {
		start = 1
	}
	var b strings.Builder
	b.WriteString(s[:start])
	for i := start; i < end; i++ {
		if i > start && (end-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	b.WriteString(s[end:])
	return b.String()
}

// Columns sets rows of cells in columns, the first one to the left and the
// others to the right, two spaces apart. A row ends with its last cell.
func Columns(rows [][]string) string {
	var widths []int
	for _, cells := range rows {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, cells := range rows {
		line := ""
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			switch i {
			case 0:
				line = c + pad
			default:
				line += "  " + pad + c
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

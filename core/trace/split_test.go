package trace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// take feeds chunks to a splitter and returns "number:line" of every line.
func take(s *Splitter, chunks ...string) (lines []string) {
	pull := func() {
		for {
			line, ok := s.Next()
			if !ok {
				return
			}
			lines = append(lines, fmt.Sprintf("%d:%s", s.Line(), line))
		}
	}
	for _, c := range chunks {
		b := []byte(c)
		s.Feed(b)
		pull()
		clear(b) // what is handed out later must not lie here
	}
	s.Close()
	pull()
	return lines
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  string
		count int64
	}{
		{"", "[]", 0},
		{"\n", "[]", 1},
		{"\n\n \t\r\n", "[]", 3},
		{"a", "[1:a]", 1},
		{"a\n", "[1:a]", 1},
		{"a\nb", "[1:a 2:b]", 2},
		{"a\r\nb\r\n", "[1:a 2:b]", 2},
		{"a\rb\n", "[1:a\rb]", 1},
		{"\n\na\n\nb\n\n", "[3:a 5:b]", 6},
		{"\v\n\f\n\u0085\n\u00a0\u2003\u3000\nx", "[5:x]", 5},
		{"\x00\n\ufeff\n\u200b", "[1:\x00 2:\ufeff 3:\u200b]", 3},
		{" \xff\n", "[1: \xff]", 1},
		{" ", "[]", 1},
	} {
		for size := 1; size <= len(c.text)+1; size++ {
			var chunks []string
			for at := 0; at < len(c.text); at += size {
				chunks = append(chunks, c.text[at:min(at+size, len(c.text))])
			}
			s := NewSplitter(MaxLine)
			if got := fmt.Sprint(take(s, chunks...)); got != c.want || s.Line() != c.count || s.Fault() != (Fault{}) {
				t.Errorf("%q in chunks of %d: got %q of %d lines, fault %v; want %q of %d", c.text, size, got, s.Line(), s.Fault(), c.want, c.count)
			}
		}
	}
}

func TestSplitRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		var b strings.Builder
		for range r.IntN(400) {
			b.WriteByte("xy\n\r \xff\x8a\x0b"[min(r.IntN(40), 7)])
		}
		var want, chunks []string
		lines := strings.Split(b.String(), "\n")
		for i, line := range lines {
			line = strings.TrimSuffix(line, "\r")
			if strings.TrimSpace(line) != "" {
				want = append(want, fmt.Sprintf("%d:%s", i+1, line))
			}
		}
		for rest := b.String(); rest != ""; {
			n := min(1+r.IntN(90), len(rest))
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		if got := take(NewSplitter(MaxLine), chunks...); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: got %q, want %q", b.String(), got, want)
		}
	}
}

func TestNewline(t *testing.T) {
	for size := range 100 {
		for at := 0; at <= size; at++ {
			b := bytes.Repeat([]byte{'\n' + 1}, size)
			for i := range b {
				b[i] = []byte{'\n' + 1, 0, 0xFF, '\n' | 0x80, '\n' - 1}[i%5]
			}
			for i := at; i < size; i += 3 {
				b[i] = '\n'
			}
			want := bytes.IndexByte(b, '\n')
			if want < 0 {
				want = size
			}
			if got := newline(b); got != want {
				t.Fatalf("%q: got %d, want %d", b, got, want)
			}
		}
	}
}

func TestLineTooLong(t *testing.T) {
	for _, chunks := range [][]string{
		{"12345\n\n12345678\n123456789\nx\n"},
		{"12345\n\n1234", "5678\n1234", "56789\nx\n"},
		{"12345\n\n12345678\n", "1234567", "8", "9"},
		{"12345\n\n12345678\n123456789"},
	} {
		s := NewSplitter(8)
		got := fmt.Sprint(take(s, chunks...))
		if got != "[1:12345 3:12345678]" || s.Fault().Code != LineTooLong || s.Line() != 4 {
			t.Errorf("%q: got %s, fault %v on line %d", chunks, got, s.Fault(), s.Line())
		}
		if line, ok := s.Next(); ok {
			t.Errorf("%q: a line after the fault: %q", chunks, line)
		}
	}
}

package trace

import (
	"fmt"
	"strings"
	"testing"
)

// rows makes n rows like those of the Mooncake conversation trace: about
// fifteen ids each, most of five or six digits.
func rows(n int) []byte {
	var b strings.Builder
	id := 0
	for i := range n {
		ids := 5 + i*7%20
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [0`, i/3*1000, ids*512-17, 1+i%500)
		for range ids - 1 {
			id += 1 + i%37
			fmt.Fprintf(&b, ", %d", id)
		}
		b.WriteString("]}\n")
	}
	return []byte(b.String())
}

func BenchmarkLine(b *testing.B) {
	data := rows(12000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var p Parser
	var row Row
	for b.Loop() {
		s := NewSplitter(MaxLine)
		for at := 0; at < len(data); at += 128 << 10 {
			s.Feed(data[at:min(at+128<<10, len(data))])
			for {
				line, ok := s.Next()
				if !ok {
					break
				}
				if f := p.Line(line, &row); f.Code != OK {
					b.Fatal(f)
				}
			}
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	data := rows(12000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		s := NewSplitter(MaxLine)
		s.Feed(data)
		for {
			if _, ok := s.Next(); !ok {
				break
			}
		}
	}
}

package tracefile

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// deaf is a survey that only lets the rows pass.
type deaf struct{}

func (deaf) Row(*trace.Row, workload.Checked) {}
func (deaf) Bad(*Error) bool                  { return true }
func (deaf) Checked(*workload.Checker)        {}

// conversations are rows like those of the Mooncake conversation trace: about
// fifteen ids each, most of five or six digits.
func conversations(n int) []byte {
	var b bytes.Buffer
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
	return b.Bytes()
}

// BenchmarkRead reads and checks every row, and makes nothing of them.
func BenchmarkRead(b *testing.B) {
	text := conversations(12000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		o := Options{Format: Mooncake, TraceBlockSize: 512, Stdin: bytes.NewReader(text), Survey: deaf{}}
		if _, err := Load(context.Background(), []string{Stdin}, o); err != nil {
			b.Fatal(err)
		}
	}
}

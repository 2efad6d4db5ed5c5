package timeline_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/timeline"
)

func name(turn int32) string { return fmt.Sprintf("request %d", turn+1) }

// fields are the fields of a message, in order.
func fields(t *testing.T, b []byte) (numbers []protowire.Number, values [][]byte) {
	t.Helper()
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		m := protowire.ConsumeFieldValue(field, kind, b[n:])
		if m < 0 {
			t.Fatal(protowire.ParseError(m))
		}
		value := b[n : n+m]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		numbers, values = append(numbers, field), append(values, value)
		b = b[n+m:]
	}
	return numbers, values
}

// TestLanesAreUsedAgain: requests one after the other have one lane, two at a
// time two, however many there are. What the file means is tested in
// internal/viewers.
func TestLanesAreUsedAgain(t *testing.T) {
	const n = 1000
	cfg := config.DefaultReplay(config.VLLM)
	load := &workload.Workload{Turns: make([]workload.Turn, n)}
	for together := range 3 {
		var out bytes.Buffer
		w := timeline.New(&out, cfg, load, name)
		for i := range int32(n) {
			at := float64(i)
			r := replay.Recording{Events: []replay.Event{{AtMs: at, Turn: i, Kind: replay.Arrived}, {AtMs: at, Turn: i, Kind: replay.Admitted}}}
			if gone := i - int32(together); gone >= 0 {
				r.Events = append([]replay.Event{{AtMs: at, Turn: gone, Kind: replay.Ended}}, r.Events...)
			}
			if together == 0 {
				r.Events = append(r.Events[1:], r.Events[0])
			}
			if err := w.Add(&r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		described, events := 0, 0
		_, packets := fields(t, out.Bytes())
		for _, p := range packets {
			numbers, _ := fields(t, p)
			for _, field := range numbers {
				switch field {
				case 60:
					described++
				case 11:
					events++
				}
			}
		}
		// Two processes, a rank's track and its three counters, then the lanes.
		if want := 6 + max(together, 1); described != want {
			t.Errorf("%d at a time: %d tracks, want %d", together, described, want)
		}
		// Three counters; request and queued begin, queued ends, prefill begins; and
		// two ends of those who have gone.
		if want := 3 + 4*n + 2*(n-together); events != want {
			t.Errorf("%d at a time: %d events, want %d", together, events, want)
		}
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestErrorsComeBack: a writer that fails is told of while the run goes on, so
// that it can end, and at the end.
func TestErrorsComeBack(t *testing.T) {
	load := &workload.Workload{Turns: make([]workload.Turn, 1)}
	w := timeline.New(full{}, config.DefaultReplay(config.VLLM), load, name)
	var err error
	for i := 0; err == nil && i < 100_000; i++ {
		err = w.Add(&replay.Recording{Passes: []replay.Pass{{EndMs: float64(i), Decodes: 1, Running: int32(i)}}})
	}
	if !errors.Is(err, errFull) || !errors.Is(w.Close(), errFull) {
		t.Errorf("the errors are %v and %v", err, w.Close())
	}
	short := timeline.New(full{}, config.DefaultReplay(config.VLLM), load, name)
	if err := short.Close(); !errors.Is(err, errFull) {
		t.Errorf("the error is %v", err)
	}
}

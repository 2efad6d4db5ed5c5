package workload

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dryserve/dryserve/core/trace"
)

// Sessions are those a map of ids would make.
func TestSessionIDsAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for round := range 200 {
		b := NewBuilder(64)
		b.Reserve(r.IntN(50))
		known := map[string]int32{}
		var order []string
		line := int64(0)
		for range 1 + r.IntN(400) {
			line += 1 + int64(r.IntN(10)/9)
			row := trace.Row{InputLength: -1, HashIDs: []uint64{1}, HasTimestamp: true}
			id := fmt.Sprintf("request_%d", line)
			switch r.IntN(4) {
			case 0:
				id = fmt.Sprintf("request_%d", r.IntN(500))
				row.SessionID = []byte(id)
			case 1:
				id = fmt.Sprintf("s%0*d", r.IntN(30), r.IntN(100))
				row.SessionID = []byte(id)
			}
			if f := b.Add(&row, line); f.Code != OK {
				t.Fatalf("round %d, line %d, id %q: %+v", round, line, id, f)
			}
			s, old := known[id]
			if !old {
				s = int32(len(order))
				known[id] = s
				order = append(order, id)
			}
			if got := b.w.Turns[len(b.w.Turns)-1].Session; got != s {
				t.Fatalf("round %d, line %d, id %q: session %d, want %d", round, line, id, got, s)
			}
		}
		w, f := b.Finish(Options{ArrivalSpeedup: 1})
		if f.Code != OK {
			t.Fatal(f)
		}
		if len(w.Sessions) != len(order) {
			t.Fatalf("round %d: %d sessions, want %d", round, len(w.Sessions), len(order))
		}
		for i, id := range order {
			if got := string(w.SessionID(int32(i))); got != id || got != string(w.AppendSessionID(nil, int32(i))) {
				t.Fatalf("round %d: session %d is %q, want %q", round, i, got, id)
			}
		}
	}
}

func TestLineOf(t *testing.T) {
	for id, want := range map[string]int64{
		"request_1": 1, "request_20": 20, "request_": 0, "request_0": 0, "request_01": 0, "request_1x": 0, "request_-1": 0,
		"Request_1": 0, "request1": 0, "": 0, "request_999999999999999999": 999999999999999999, "request_1000000000000000000": 0,
		"request_+1": 0, "request_1/": 0, "request_:": 0,
	} {
		if got := lineOf([]byte(id)); got != want {
			t.Errorf("%q: got %d, want %d", id, got, want)
		}
	}
}

package events

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/wire"
	"github.com/dryserve/dryserve/host/native/routerwire"
)

// The reference's own messages, byte for byte.
func TestGoldenFrames(t *testing.T) {
	text, err := os.ReadFile("testdata/frames.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]string
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	const id = 13279588213305406243
	parent, used := uint64(5970468060320891430), uint64(0)
	stored := routerwire.RouterEvent{WorkerID: id, Tier: routerwire.Device, Residency: "worker", Event: routerwire.CacheEvent{
		ID: 2, Data: routerwire.EventData{Stored: &routerwire.StoredBlocks{Parent: &parent, Blocks: []routerwire.StoredBlock{{Block: 17072634668989164956, Tokens: 5151424540582072280}}}},
	}}
	for topic, x := range map[string]struct {
		publisher, sequence uint64
		ms                  int64
		message             any
	}{
		TopicCache:    {4868981692889746, 1, 1795962434877, []routerwire.RouterEvent{stored}},
		TopicLoad:     {4160748051810379, 4, 1795962434881, routerwire.ActiveLoad{WorkerID: id, UsedBlocks: &used}},
		TopicRequests: {2347384694377294, 3, 1795962434876, marks{[]mark{{"ff2853f8-2f6c-4c4b-aa5b-c9775356b10f", ranked{id, 0}, "MarkPrefillCompleted", id, nil}}}},
		TopicPasses:   {3142686103897709, 186, 1795962490947, forwardPass{Version: 1, Worker: "13279588213305406243", Counter: 187}},
	} {
		payload, err := routerwire.Marshal(x.message)
		if err != nil {
			t.Fatal(err)
		}
		p := newPublisher(x.publisher, topic, nil)
		p.now = func() time.Time { return time.UnixMilli(x.ms) }
		body, err := p.envelope(x.sequence, payload)
		if err != nil {
			t.Fatal(err)
		}
		s := socket{topic: []byte(topic)}
		var got []string
		for _, part := range s.frames(x.publisher, x.sequence, body) {
			got = append(got, hex.EncodeToString(part))
		}
		if d := cmp.Diff(want[topic], got); d != "" {
			t.Errorf("%s (-reference +ours):\n%s", topic, d)
		}
	}
}

// said builds what an engine says: lists of "+parent:hash,hash" and "-hash,hash".
func said(list ...string) (raw []engine.KVEvent, blocks []engine.KVBlock) {
	for _, s := range list {
		e := engine.KVEvent{Kind: engine.Removed, First: len(blocks)}
		rest := s[1:]
		if s[0] != '-' {
			e.Kind, e.Host = engine.Stored, s[0] == '*'
			var n int
			if _, err := fmt.Sscanf(rest, "%d:", &e.Parent); err == nil {
				e.HasParent = true
			}
			for n = 0; rest[n] != ':'; n++ {
			}
			rest = rest[n+1:]
		}
		for len(rest) > 0 {
			var hash uint64
			n, _ := fmt.Sscanf(rest, "%d", &hash)
			if n != 1 {
				panic(s)
			}
			blocks = append(blocks, engine.KVBlock{Hash: hash, Local: hash * 10})
			for len(rest) > 0 && rest[0] != ',' {
				rest = rest[1:]
			}
			if len(rest) > 0 {
				rest = rest[1:]
			}
		}
		e.Count = len(blocks) - e.First
		raw = append(raw, e)
	}
	return raw, blocks
}

// spell writes events as said reads them, with their ids.
func spell(list []routerwire.RouterEvent) (out []string) {
	for _, e := range list {
		s := fmt.Sprint(e.Event.ID, " ")
		if r := e.Event.Data.Removed; r != nil {
			s += "-"
			for i, h := range r.Blocks {
				if i > 0 {
					s += ","
				}
				s += fmt.Sprint(h)
			}
		} else {
			s += "+"
			if e.Tier == routerwire.HostPinned {
				s = s[:len(s)-1] + "*"
			}
			if p := e.Event.Data.Stored.Parent; p != nil {
				s += fmt.Sprint(*p)
			}
			s += ":"
			for i, b := range e.Event.Data.Stored.Blocks {
				if i > 0 {
					s += ","
				}
				s += fmt.Sprint(b.Block)
			}
		}
		out = append(out, s)
	}
	return out
}

func TestCache(t *testing.T) {
	c := NewCache(7, 1)
	for _, step := range []struct{ said, want []string }{
		{[]string{"+:1,2", "+2:3"}, []string{"1 +:1,2,3"}},               // what follows is joined
		{[]string{"+1:4", "+:5", "+5:6"}, []string{"2 +1:4", "3 +:5,6"}}, // what does not is not
		{[]string{"-6", "-4,5", "+1:8"}, []string{"4 -6,4,5", "5 +1:8"}}, // removals are joined
		{[]string{"+2:3", "-3"}, []string{"6 +2:3"}},                     // stored twice, removed once
		{[]string{"-3", "-99"}, []string{"7 -3,99"}},                     // what was never stored passes
		{[]string{"*:1", "*1:2"}, []string{"8 *:1,2"}},                   // another tier
		{[]string{"*2:3", "+2:9"}, []string{"9 *2:3", "10 +2:9"}},        // is not joined
	} {
		got := spell(c.Tell(said(step.said...)))
		if !slices.Equal(got, step.want) {
			t.Errorf("%q: %q, want %q", step.said, got, step.want)
		}
	}
	answer := func(start, end int64) string {
		q := wire.KVQuery{WorkerID: 7, Rank: 1}
		if start >= 0 {
			s := uint64(start)
			q.Start = &s
		}
		if end >= 0 {
			e := uint64(end)
			q.End = &e
		}
		switch x := c.Query(q); {
		case x["TreeDump"] != nil:
			d := x["TreeDump"].(treeDump)
			return fmt.Sprint("dump ", spell(d.Events), d.Last, d.Scope)
		case x["Events"] != nil:
			d := x["Events"].(eventList)
			return fmt.Sprint("events ", spell(d.Events), d.Last)
		default:
			text, _ := json.Marshal(x)
			return string(text)
		}
	}
	for _, x := range []struct {
		start, end int64
		want       string
	}{
		{-1, -1, "dump [1 +:1 2 +1:2,9 3 +1:8] 10all"}, {0, -1, "dump [1 +:1 2 +1:2,9 3 +1:8] 10all"},
		{9, -1, "events [9 *2:3 10 +2:9] 10"}, {8, 9, "events [8 *:1,2 9 *2:3] 10"},
		{11, -1, `{"TooNew":{"requested_start":11,"requested_end":null,"newest_available":10}}`}, {5, 4, `{"InvalidRange":{"start_id":5,"end_id":4}}`},
	} {
		if got := answer(x.start, x.end); got != x.want {
			t.Errorf("from %d to %d: %s, want %s", x.start, x.end, got, x.want)
		}
	}
	if got := c.Query(wire.KVQuery{WorkerID: 8, Rank: 1})["Error"]; got != "this is worker 7, rank 1; worker 8, rank 1 is asked for" {
		t.Error(got)
	}
	if got := NewCache(7, 0).Query(wire.KVQuery{WorkerID: 7})["TreeDump"].(treeDump); got.Events == nil || len(got.Events) != 0 || got.Last != 0 {
		t.Errorf("%+v", got)
	}
}

// Runs are cut at 128 blocks, and 1,024 events are remembered.
func TestCacheLimits(t *testing.T) {
	c := NewCache(1, 0)
	var list []string
	for i := 1; i <= 300; i++ {
		parent := ""
		if i > 1 {
			parent = fmt.Sprint(i - 1)
		}
		list = append(list, fmt.Sprintf("+%s:%d", parent, i))
	}
	got := c.Tell(said(list...))
	if len(got) != 3 || len(got[0].Event.Data.Stored.Blocks) != 128 || len(got[2].Event.Data.Stored.Blocks) != 44 {
		t.Errorf("%d events", len(got))
	}
	for i := range 2000 {
		c.Tell(said(fmt.Sprintf("+:%d", 1000+i)))
	}
	start := uint64(5)
	if x := c.Query(wire.KVQuery{WorkerID: 1, Start: &start}); x["TreeDump"] == nil {
		t.Error("it remembers too much")
	}
	start = 2003 - 1023
	if x := c.Query(wire.KVQuery{WorkerID: 1, Start: &start}); x["Events"] == nil || len(x["Events"].(eventList).Events) != 1024 {
		t.Error("it remembers too little")
	}
}

// What is told reaches a subscriber: loads once they are quiet, marks in batches,
// passes at once and a heartbeat without any.
func TestTelling(t *testing.T) {
	p, err := ZMQ{Bind: "127.0.0.1"}.Open(card.Endpoint{}, "t", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.Channel().Config["endpoint"], "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var greeting [64]byte
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	if _, err := conn.Write(append(greeting[:], "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB\x00\x02\x01t"...)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if _, err := io.CopyN(io.Discard, r, 64+27); err != nil {
		t.Fatal(err)
	}
	for !p.Wanted() {
		time.Sleep(time.Millisecond)
	}
	read := func() (message any) {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		var body []byte
		for more := true; more; {
			flags, err := r.ReadByte()
			if err != nil {
				t.Fatal(err)
			}
			more = flags&1 != 0
			size := 0
			width := 1 + 7*int(flags>>1&1)
			for range width {
				b, err := r.ReadByte()
				if err != nil {
					t.Fatal(err)
				}
				size = size<<8 | int(b)
			}
			body = make([]byte, size)
			if _, err := io.ReadFull(r, body); err != nil {
				t.Fatal(err)
			}
		}
		var e envelope
		if err := routerwire.Unmarshal(body[5:], &e); err != nil {
			t.Fatal(err)
		}
		if err := routerwire.Unmarshal(e.Payload, &message); err != nil {
			t.Fatal(err)
		}
		return message
	}
	l := NewLoad(p, 9)
	for used := range 5 {
		l.Set(0, used)
	}
	if m := fmt.Sprint(read()); m != "map[active_decode_blocks:<nil> active_prefill_tokens:<nil> dp_rank:0 kv_used_blocks:4 worker_id:9]" {
		t.Error(m)
	}
	l.Set(0, 4) // nothing new
	marks := NewMarks(p, 9)
	marks.Prefilled("a", 1)
	marks.Prefilled("b", 0)
	if m := read().(map[string]any)["events"].([]any); len(m) == 0 || len(m) > 2 {
		t.Errorf("%v", m)
	} else if len(m) == 1 {
		read() // the second came late
	}
	passes := NewPasses(p, "9", 1)
	defer passes.Stop()
	passes.Passed(0, &engine.Forward{Decodes: 3, DurationMs: 5})
	if m := read().(map[string]any); fmt.Sprint(m["counter_id"], m["wall_time"], m["scheduled_requests"].(map[string]any)["num_decode_requests"]) != "1 0.005 3" {
		t.Errorf("%v", m)
	}
	if m := read().(map[string]any); fmt.Sprint(m["counter_id"], m["wall_time"]) != "2 0" {
		t.Errorf("the heartbeat: %v", m)
	}
}

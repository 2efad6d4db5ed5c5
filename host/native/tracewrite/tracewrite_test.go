package tracewrite

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T, text string, o tracefile.Options) *workload.Workload {
	t.Helper()
	o.Stdin = strings.NewReader(text)
	if o.TraceBlockSize == 0 {
		o.TraceBlockSize = 64
	}
	o.ArrivalSpeedup = 1
	trace, err := tracefile.Load(context.Background(), []string{"-"}, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return trace.Workload
}

// convert gives the rows of a trace.
func convert(t *testing.T, text string, o tracefile.Options) (string, Losses) {
	t.Helper()
	o.AsWritten = true
	var b bytes.Buffer
	losses, err := Write(&b, load(t, text, o))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), losses
}

// request is a turn with all that a run sees of it.
type request struct {
	Session         string
	Index           int32
	HasStart        bool
	StartMs, Delay  float64
	Input, Output   int32
	IDs             []uint64
	Planned         []uint32
	HasPlanned      bool
	Priority        int32
	StrictPriority  uint32
	Policy          string
	SessionPosition int32
}

func requests(w *workload.Workload, names bool) []request {
	var list []request
	for i := range w.Turns {
		t := &w.Turns[i]
		s := &w.Sessions[t.Session]
		r := request{
			Index: t.Index, HasStart: s.HasStart, StartMs: s.StartMs, Delay: t.DelayMs, Input: t.Input, Output: t.Output,
			IDs: w.Prompts.AppendIDs(nil, t.Leaf, int(t.IDs)), SessionPosition: t.Session,
		}
		if names {
			r.Session = string(w.SessionID(t.Session))
		}
		if t.Planned >= 0 {
			r.HasPlanned, r.Planned = true, w.Planned[w.PlannedOff[t.Planned]:w.PlannedOff[t.Planned+1]]
		}
		c := w.Class(int32(i))
		if r.Priority, r.StrictPriority = c.Priority, c.Strict; c.Policy >= 0 {
			r.Policy = string(w.Policies.At(c.Policy))
		}
		list = append(list, r)
	}
	return list
}

// randomTrace is Mooncake rows with everything they may have.
func randomTrace(rng *rand.Rand) string {
	var b strings.Builder
	started := map[string]bool{}
	for i := range 1 + rng.Intn(15) {
		var fields []string
		id := ""
		switch rng.Intn(5) {
		case 0, 1:
			id = fmt.Sprintf("s %d\n\"", rng.Intn(3))
		case 2:
			id = fmt.Sprintf("request_%d", 1+rng.Intn(20))
		}
		if id != "" {
			fields = append(fields, fmt.Sprintf(`"session_id":%q`, id))
		} else {
			id = fmt.Sprint("row ", i)
		}
		known := started[id]
		if started[id] = true; known || strings.HasPrefix(id, "request_") {
			fields = append(fields, fmt.Sprintf(`"timestamp":%v`, float64(i)*100+rng.Float64()))
			if known {
				fields = append(fields, fmt.Sprintf(`"delay":%v`, rng.Float64()*1000))
			}
		} else {
			fields = append(fields, fmt.Sprintf(`"timestamp":%v`, float64(i)*100+float64(rng.Intn(7))/8))
		}
		output := rng.Intn(4)
		if rng.Intn(5) == 0 {
			fields = append(fields, fmt.Sprintf(`"output_token_ids":[%s]`, strings.Trim(strings.Repeat("5,", output), ",")))
		}
		if rng.Intn(5) == 0 {
			fields = append(fields, fmt.Sprintf(`"priority":%d,"strict_priority":%d,"policy_class":"p%d"`, rng.Intn(9)-4, rng.Intn(3), rng.Intn(2)))
		}
		fields = append(fields, fmt.Sprintf(`"input_length":%d,"output_length":%d,"hash_ids":[%d,%d,%d]`, 1+rng.Intn(192), output, rng.Intn(3), rng.Intn(3), rng.Uint64()))
		b.WriteString("{" + strings.Join(fields, ",") + "}\n")
		if rng.Intn(6) == 0 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// What was written is read as what it was written from.
func TestRoundTrip(t *testing.T) {
	tried, inexact := 0, 0
	for seed := range int64(600) {
		text := randomTrace(rand.New(rand.NewSource(seed)))
		o := tracefile.Options{Format: tracefile.Mooncake, TraceBlockSize: 64, ArrivalSpeedup: 1, Stdin: strings.NewReader(text)}
		if _, err := tracefile.Load(context.Background(), []string{"-"}, o); err != nil {
			continue // its sessions do not fit together
		}
		tried++
		rows, losses := convert(t, text, tracefile.Options{Format: tracefile.Mooncake})
		if losses.NoStarts || losses.BlockSize != 64 {
			t.Fatalf("seed %d: %+v", seed, losses)
		}
		if losses.Inexact > 0 { // a difference of timestamps
			inexact++
			continue
		}
		for _, capped := range []bool{false, true} {
			o := tracefile.Options{Format: tracefile.Mooncake, Concurrency: capped}
			before, after := load(t, text, o), load(t, rows, o)
			names := before.NamesSessions(capped) && !strings.Contains(text, "\n\n") // blank lines count in names
			if d := cmp.Diff(requests(before, names), requests(after, names)); d != "" {
				t.Fatalf("seed %d:\n%s\n%s\n%s", seed, text, rows, d)
			}
		}
		if again, _ := convert(t, rows, tracefile.Options{Format: tracefile.Mooncake}); again != rows {
			t.Fatalf("seed %d: written again it is\n%swas\n%s", seed, again, rows)
		}
	}
	if tried < 250 || inexact > tried/50 {
		t.Errorf("%d traces, %d with a time that cannot be written", tried, inexact)
	}
}

// Formats without hash ids become the rows that a replay makes of them.
func TestOtherFormats(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		losses           Losses
		capped           bool
	}{
		{
			"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,100,44\n2023-11-16 18:15:50.9951690,30,109\n",
			`{"timestamp": 0, "input_length": 100, "output_length": 44, "hash_ids": [1, 2]}
{"timestamp": 4314.579, "input_length": 30, "output_length": 109, "hash_ids": [3]}
`, Losses{BlockSize: 64}, false,
		},
		{
			"burstgpt", "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
				"100.0,s,0.5,GPT-4,60,30,90,Conversation log\n101.0,s,1,GPT-4,120,5,125,Conversation log\n",
			`{"session_id": "s", "timestamp": 100000, "input_length": 60, "output_length": 30, "hash_ids": [1]}
{"session_id": "s", "delay": 500, "input_length": 120, "output_length": 5, "hash_ids": [1, 2]}
`, Losses{BlockSize: 64}, false,
		},
		{
			"applied", `{"num_turns":1,"input_prompt_length":70,"assistant_response_length":[2],"tool_call_output_length":[3],"tool_call_latency":[0.01],"final_assistant_response_length":4}`,
			`{"session_id": "applied_compute_agentic_session_1", "input_length": 70, "output_length": 2, "hash_ids": [1, 2]}
{"session_id": "applied_compute_agentic_session_1", "delay": 10, "input_length": 75, "output_length": 4, "hash_ids": [1, 2]}
`, Losses{BlockSize: 64, NoStarts: true}, true,
		},
	} {
		rows, losses := convert(t, c.text, tracefile.Options{})
		if rows != c.want || losses != c.losses {
			t.Errorf("%s: %+v\n%s\nwant\n%s", c.name, losses, rows, c.want)
		}
		o := tracefile.Options{Concurrency: c.capped}
		if d := cmp.Diff(requests(load(t, c.text, o), false), requests(load(t, rows, o), false)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// Of a graph the turns of a session are left; the rest begins as early as it
// could, and is counted.
func TestGraph(t *testing.T) {
	const head = `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"f","digest":"d"}}` + "\n"
	node := func(id, session string, notBefore int, deps ...string) string {
		return fmt.Sprintf(`{"request_id":%q,"play_id":"p","session_id":%q,"model":"m","input_length":64,"output_length":5,"hash_ids":[1],"not_before_ms":%d,"dependencies":[%s]}`+"\n",
			id, session, notBefore, strings.Join(deps, ","))
	}
	dep := func(on, trigger, relation string, delay int) string {
		return fmt.Sprintf(`{"request_id":%q,"trigger":%q,"relation":%q,"delay_ms":%d}`, on, trigger, relation, delay)
	}
	rows, losses := convert(t, head+
		node("a", "s", 100)+
		node("b", "s", 200, dep("a", "completion", "sequence", 10))+
		node("c", "t", 0, dep("a", "dispatch", "spawn", 30))+
		node("d", "s", 0, dep("b", "completion", "sequence", 7), dep("c", "completion", "join", 1))+
		node("e", "s", 0, dep("a", "completion", "sequence", 20)), tracefile.Options{})
	const want = `{"request_id": "a", "session_id": "s", "timestamp": 100, "input_length": 64, "output_length": 5, "hash_ids": [1]}
{"request_id": "b", "session_id": "s", "delay": 10, "input_length": 64, "output_length": 5, "hash_ids": [1]}
{"request_id": "d", "session_id": "s", "delay": 7, "input_length": 64, "output_length": 5, "hash_ids": [1]}
{"request_id": "e", "session_id": "s#2", "timestamp": 120, "input_length": 64, "output_length": 5, "hash_ids": [1]}
{"request_id": "c", "session_id": "t", "timestamp": 130, "input_length": 64, "output_length": 5, "hash_ids": [1]}
`
	if rows != want || losses != (Losses{BlockSize: 64, Plays: 1, Waits: 4, Turns: 2, PartTurns: 1, Floors: 1}) {
		t.Errorf("%+v\n%s\nwant\n%s", losses, rows, want)
	}
}

// Times are read back to the last bit, but for the few that no number of a trace
// is read as: those are one unit in the last place off.
func TestSpell(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var s speller
	inexact := 0
	const n = 10000
	for i := range n {
		ms := rng.Float64() * math.Pow(10, float64(rng.Intn(14)-4))
		switch i % 5 {
		case 0:
			ms = math.Floor(ms)
		case 1:
			ms = float64(rng.Int63()) / 1e6
		case 2:
			ms = -ms
		}
		text, exact := s.append(nil, ms)
		s.try = append(s.try[:0], text...)
		if !exact {
			inexact++
			if s.reads(ms) || !s.reads(math.Nextafter(ms, 0)) && !s.reads(math.Nextafter(ms, 2*ms)) {
				t.Fatalf("%v is written as %s", ms, text)
			}
		} else if !s.reads(ms) {
			t.Fatalf("%v is written as %s", ms, text)
		}
	}
	if inexact > n/50 {
		t.Errorf("%d of %d are not exact", inexact, n)
	}
	for _, ms := range []float64{0, 5e-324, 1e-300, 1.7976931348623157e308, 1 << 62, 1e19} {
		text, exact := s.append(nil, ms)
		s.try = append(s.try[:0], text...)
		if s.reads(ms) != exact {
			t.Errorf("%v is written as %s, exact: %v", ms, text, exact)
		}
	}
	if !slices.Contains([]string{"0.1"}, string(first(s.append(nil, 0.1)))) {
		t.Error("0.1 is not written as 0.1")
	}
}

func first(text []byte, _ bool) []byte { return text }

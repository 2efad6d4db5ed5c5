package runner

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

var update = flag.Bool("update", false, "write the golden frames instead of comparing")

const goldenFrames = "../../../testdata/frames/dialogue.txt"

// say is one call of the dialogue.
type say struct {
	what   string
	op     frame.Op
	fields []frame.Field
	raw    []byte // the request, where it is no frame
}

func field(name string, v any) frame.Field { return frame.Field{Name: name, Var: v} }

func ptr[T any](v T) *T { return &v }

// smallRun is a tight engine with both kinds of tables.
func smallRun() *frame.Run {
	r := &frame.Run{Replay: config.DefaultReplay(config.VLLM)}
	r.Engine.NumGPUBlocks, r.Engine.BlockSize, r.NumWorkers, r.TraceBlockSize = 6, 4, 2, 4
	r.Engine.Timing = config.Timing{Kind: config.Profile, PrefillMs: 1.5, DecodeMs: 0.25,
		Profile: &config.ProfileTable{
			PrefillISL: []float64{1, 100}, PrefillTTFTMs: []float64{10, 20},
			DecodeActiveKVTokens: []float64{1, 100}, DecodeContextLength: []float64{1, 50}, DecodeITLMs: []float64{2, 3, 4, 5},
		},
		Grid: &config.GridTable{
			PrefillBatch: []float64{1, 2}, PrefillISL: []float64{1, 2}, PrefillPrefix: []float64{0, 1}, PrefillMs: make([]float64, 8),
			DecodeBatch: []float64{1, 2}, DecodeContext: []float64{1, 2}, DecodeMs: make([]float64, 4),
		},
	}
	r.SLA.TTFTMs = 100
	r.CaptureRequests = true
	return r
}

// routedRun has a KV router with classes of requests.
func routedRun() *frame.Run {
	r := &frame.Run{Replay: config.DefaultReplay(config.VLLM)}
	r.Engine.NumGPUBlocks, r.Engine.BlockSize, r.NumWorkers, r.TraceBlockSize, r.CaptureRequests = 64, 4, 2, 4, true
	x := config.DefaultRouter()
	x.QueueThreshold = 0.001
	x.Policy = &config.RouterPolicy{
		DefaultFamily: "f", Buckets: []config.PolicyBucket{{Name: "short"}, {Name: "long", MinTokens: 8}},
		Classes: []config.PolicyClass{
			{Name: "a", Family: "f", Bucket: "short", Queue: config.QueueWSPT, Quantum: 100, BusyTokens: 1, BusyFraction: config.Unset, MaxRequests: 9, MaxTokens: config.NoLimit, MaxCached: config.NoLimit},
			{Name: "b", Family: "f", Bucket: "long", Quantum: 100, BusyTokens: 1, BusyFraction: config.Unset, MaxRequests: 1, MaxTokens: config.NoLimit, MaxCached: config.NoLimit},
		},
	}
	r.Routing = config.Routing{Mode: config.KVRouter, Seed: 7, Router: &x, EventLagMs: 1.5}
	return r
}

// fullRun lets one request wait, on one worker.
func fullRun() *frame.Run {
	r := routedRun()
	r.NumWorkers = 1
	return r
}

// pooledRun has two pools.
func pooledRun() *frame.Run {
	r := routedRun()
	r.Routing.Router.Policy, r.Routing.Router.QueueThreshold = nil, config.Unset
	r.Prefill = config.Pool{Engine: r.Engine, Workers: 1}
	r.Prefill.Engine.Role, r.Engine.Role = config.Prefill, config.Decode
	r.Prefill.Engine.Transfer = config.Transfer{BytesPerToken: 1000, BandwidthGBs: 0.001}
	return r
}

const firstText = `{"timestamp":0,"input_length":10,"output_length":4,"hash_ids":[1,2,3],"session_id":"ä"}` + "\n" +
	`{"timestamp":3,"input_length":4,"output_length":30,"hash_ids":[9]}` + "\n" + `{"timestamp":50,"inp`

const talkText = `{"num_turns":1,"input_prompt_length":9,"assistant_response_length":[2],"tool_call_output_length":[3],"tool_call_latency":[0.01],"final_assistant_response_length":4}` + "\n"

const graphText = `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"f","digest":"d"}}` + "\n" +
	`{"request_id":"a","play_id":"P","session_id":"S","model":"m","input_length":100,"output_length":2,"hash_ids":[1,2],"not_before_ms":0}` + "\n" +
	`{"request_id":"b","play_id":"P","session_id":"S","model":"m","input_length":100,"output_length":2,"hash_ids":[1,2],"not_before_ms":0,` +
	`"dependencies":[{"request_id":"a","trigger":"completion","relation":"sequence","delay_ms":5}]}` + "\n"

const wekaText = `{"id":"t","models":["m"],"block_size":4,"hash_id_scope":"local","requests":[` + "\n" + `{"type":"n","t":0,"model":"m","in":5,"out":2,"hash_ids":[1,2]}]}`

const restText = `ut_length":8,"output_length":2,"hash_ids":[1,2],"session_id":"ä"}` + "\n"

// dialogues are calls to one simulation each.
func dialogues() map[string][]say {
	none := []frame.Field(nil)
	text := func(text string, end bool) []frame.Field {
		return (&frame.Feeding{Text: []byte(text), End: end, Reserve: 3}).Fields()
	}
	simple := (&frame.Run{Replay: config.DefaultReplay(config.SGLang)}).Fields()
	wrong := config.DefaultReplay(config.VLLM)
	wrong.NumWorkers = 0
	all := map[string][]say{
		"1 a run": {
			{"configure", frame.Configure, smallRun().Fields(), nil},
			{"feed the beginning", frame.Feed, text(firstText, false), nil},
			{"progress", frame.Progress, none, nil},
			{"feed the rest", frame.Feed, text(restText, true), nil},
			{"turns", frame.Turns, none, nil},
			{"sessions", frame.Sessions, (&frame.Part{From: 1, Most: 5}).Fields(), nil},
			{"one event", frame.Step, []frame.Field{field("events", ptr(1))}, nil},
			{"step to the end", frame.Step, []frame.Field{field("events", ptr(100000))}, nil},
			{"summarize", frame.Summarize, none, nil},
			{"summarize again", frame.Summarize, none, nil},
			{"records", frame.Records, (&frame.Part{Most: 10}).Fields(), nil},
			{"records past the end", frame.Records, (&frame.Part{From: 9, Most: 10}).Fields(), nil},
			{"unservable", frame.Unservable, none, nil},
		},
		"2 refusals": {
			{"an operation too early", frame.Step, []frame.Field{field("events", ptr(1))}, nil},
			{"no frame", frame.Configure, nil, []byte("hello")},
			{"another version", frame.Configure, nil, []byte{0x81, 0xA1, 'v', 7}},
			{"an unknown operation", 99, none, nil},
			{"an unknown key", frame.Configure, []frame.Field{field("engine.block_sise", ptr(16))}, nil},
			{"a wrong type", frame.Configure, []frame.Field{field("num_workers", ptr("two"))}, nil},
			{"a wrong configuration", frame.Configure, (&frame.Run{Replay: wrong}).Fields(), nil},
			{"configure", frame.Configure, simple, nil},
			{"no text", frame.Feed, none, nil},
			{"a reserve out of range", frame.Feed, []frame.Field{field("text", ptr([]byte{})), field("reserve", ptr(-1))}, nil},
			{"a row at fault", frame.Feed, text(strings.Replace(firstText, `"output_length":30`, `"output_length":3000000000`, 1), false), nil},
			{"feed on", frame.Feed, text(restText, true), nil},
		},
		"4 questions": {
			{"configure", frame.Configure, []frame.Field{field("engine.timing.kind", ptr(uint8(config.External)))}, nil},
			{"feed", frame.Feed, text(strings.Split(firstText, "\n")[1], true), nil},
			{"step", frame.Step, []frame.Field{field("events", ptr(100))}, nil},
			{"no answer", frame.Step, []frame.Field{field("events", ptr(100))}, nil},
			{"an answer", frame.Step, []frame.Field{field("events", ptr(100)), field("answer_ms", ptr(12.5))}, nil},
			{"progress", frame.Progress, none, nil},
		},
		"5 a synthetic workload": {
			{"configure", frame.Configure, []frame.Field{field("num_workers", ptr(2))}, nil},
			{"no tokens", frame.Synthesize, frame.SpecFields(&synth.Spec{OutputTokens: 3, Sessions: 4}), nil},
			{"too many", frame.Synthesize, frame.SpecFields(&synth.Spec{InputTokens: 100, OutputTokens: 3, Sessions: 1 << 30, Turns: 9, BlockSize: 64}), nil},
			{"after that", frame.Synthesize, none, nil},
		},
		"6 another one": {
			{"configure", frame.Configure, []frame.Field{field("num_workers", ptr(2))}, nil},
			{"synthesize", frame.Synthesize, frame.SpecFields(&synth.Spec{InputTokens: 100, OutputTokens: 3, Sessions: 4, Arrival: synth.Poisson, RatePerS: 2, ArrivalSeed: 7, BlockSize: 64}), nil},
			{"sessions", frame.Sessions, none, nil},
			{"step", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
			{"summarize", frame.Summarize, none, nil},
		},
		"7 behind a KV router": {
			{"a bad weight", frame.Configure, []frame.Field{field("routing.mode", ptr(uint8(1))), field("routing.router.temperature", ptr(-1.0))}, nil},
			{"classes without a family", frame.Configure, []frame.Field{field("routing.mode", ptr(uint8(1))), field("routing.router.policy.default_family", ptr("f"))}, nil},
			{"columns of different lengths", frame.Configure, []frame.Field{field("routing.mode", ptr(uint8(1))), field("routing.router.policy.buckets", ptr("f"))}, nil},
			{"configure", frame.Configure, routedRun().Fields(), nil},
			{"feed", frame.Feed, text(firstText+restText, true), nil},
			{"step", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
			{"records", frame.Records, none, nil},
			{"routes", frame.Routes, (&frame.Part{From: 1, Most: 2}).Fields(), nil},
		},
		"8 a queue that is full": {
			{"configure", frame.Configure, fullRun().Fields(), nil},
			{"feed", frame.Feed, text(strings.Repeat(`{"timestamp":0,"input_length":10,"output_length":4,"hash_ids":[1,2,3]}`+"\n", 4), true), nil},
			{"step", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
		},
		"9 two pools": {
			{"configure", frame.Configure, pooledRun().Fields(), nil},
			{"feed", frame.Feed, text(firstText+restText, true), nil},
			{"step", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
			{"summarize", frame.Summarize, none, nil},
			{"records", frame.Records, none, nil},
			{"handoffs", frame.Handoffs, none, nil},
		},
		"A direct": {
			{"configure", frame.Configure, []frame.Field{field("routing.mode", ptr(uint8(5))), field("num_workers", ptr(2)), field("capture_requests", ptr(true)), field("trace_block_size", ptr(4))}, nil},
			{"feed", frame.Feed, text(firstText+restText, true), nil},
			{"too early", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
			{"too few", frame.Direct, []frame.Field{field("worker", ptr([]int32{1, 0}))}, nil},
			{"nobody", frame.Direct, []frame.Field{field("worker", ptr([]int32{1, 0, 2}))}, nil},
			{"direct", frame.Direct, []frame.Field{field("worker", ptr([]int32{1, 0, 1}))}, nil},
			{"step", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
			{"too late", frame.Direct, []frame.Field{field("worker", ptr([]int32{1, 0, 1}))}, nil},
			{"records", frame.Records, none, nil},
		},
		"B a recording": {
			{"configure", frame.Configure, []frame.Field{field("record", ptr(true)), field("trace_block_size", ptr(4))}, nil},
			{"feed", frame.Feed, text(firstText+restText, true), nil},
			{"too early", frame.TakeRecording, none, nil},
			{"some events", frame.Step, []frame.Field{field("events", ptr(6))}, nil},
			{"take the recording", frame.TakeRecording, none, nil},
			{"nothing new", frame.TakeRecording, none, nil},
		},
		"3 a line at fault": {
			{"configure", frame.Configure, simple, nil},
			{"feed", frame.Feed, text(strings.Replace(firstText, `30`, `"30"`, 1), true), nil},
			{"progress", frame.Progress, none, nil},
		},
	}
	maps.Copy(all, formatDialogues())
	return all
}

// formatDialogues are those of traces in other formats.
func formatDialogues() map[string][]say {
	none := []frame.Field(nil)
	return map[string][]say{
		"I workers that come and go": {
			{"configure", frame.Configure, []frame.Field{field("scaling.policy", ptr(2)), field("scaling.startup_ms", ptr(5)), field("samples.every_ms", ptr(20)), field("num_workers", ptr(2)), field("trace_block_size", ptr(4))}, nil},
			{"feed", frame.Feed, (&frame.Feeding{Text: []byte(firstText + restText), End: true, Size: -1}).Fields(), nil},
			{"no question yet", frame.Tick, none, nil},
			{"step", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
			{"what is told", frame.Tick, none, nil},
			{"a decision out of range", frame.Step, []frame.Field{field("events", ptr(1000)), field("target_decode", ptr(-2))}, nil},
			{"a decision", frame.Step, []frame.Field{field("events", ptr(1000)), field("target_decode", ptr(3)), field("next_ms", ptr(30.0))}, nil},
			{"what is told", frame.Tick, none, nil},
			{"no more decisions", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
			{"samples", frame.TakeSamples, none, nil},
			{"nothing new", frame.TakeSamples, none, nil},
			{"lifecycle", frame.Lifecycle, none, nil},
		},
		"C formats": {
			{"no such format", frame.Configure, []frame.Field{field("format", ptr(9))}, nil},
			{"configure", frame.Configure, []frame.Field{field("concurrency", ptr(1))}, nil},
			{"not enough to tell", frame.Feed, []frame.Field{field("text", ptr([]byte(talkText[:20])))}, nil},
			{"the rest", frame.Feed, []frame.Field{field("text", ptr([]byte(talkText[20:]))), field("end", ptr(true))}, nil},
		},
		"D options that do not fit": {
			{"configure", frame.Configure, []frame.Field{field("format", ptr(4))}, nil},
			{"feed", frame.Feed, []frame.Field{field("text", ptr([]byte(talkText))), field("end", ptr(true))}, nil},
		},
		"E a graph": {
			{"configure", frame.Configure, []frame.Field{field("format", ptr(3)), field("execution_model", ptr("m")), field("lanes", ptr(1)), field("capture_requests", ptr(true))}, nil},
			{"feed", frame.Feed, []frame.Field{field("text", ptr([]byte(graphText))), field("end", ptr(true))}, nil},
			{"graph", frame.Graph, none, nil},
			{"nodes", frame.Nodes, none, nil},
			{"plays", frame.Plays, none, nil},
			{"step", frame.Step, []frame.Field{field("events", ptr(1000))}, nil},
			{"summarize", frame.Summarize, none, nil},
			{"outcomes", frame.Outcomes, none, nil},
		},
		"F a graph at fault": {
			{"configure", frame.Configure, []frame.Field{field("execution_model", ptr("m"))}, nil},
			{"feed", frame.Feed, []frame.Field{field("text", ptr([]byte(strings.Replace(graphText, `"request_id":"a","trigger"`, `"request_id":"z","trigger"`, 1)))), field("end", ptr(true))}, nil},
		},
		"G files of objects": {
			{"configure", frame.Configure, []frame.Field{field("execution_model", ptr("m")), field("format", ptr(6))}, nil},
			{"a file", frame.Feed, []frame.Field{field("text", ptr([]byte(wekaText))), field("file", ptr("one.json")), field("size", ptr(len(wekaText))), field("end", ptr(true)), field("more", ptr(true))}, nil},
			{"no file", frame.Feed, []frame.Field{field("text", ptr([]byte(wekaText))), field("end", ptr(true))}, nil},
			{"an object at fault", frame.Feed, []frame.Field{field("text", ptr([]byte(strings.Replace(wekaText, `"in":5`, `"in":0`, 1)))), field("file", ptr("two.json")), field("size", ptr(len(wekaText))), field("end", ptr(true))}, nil},
		},
		"H records at fault": {
			{"configure", frame.Configure, []frame.Field{field("format", ptr(5))}, nil},
			{"feed", frame.Feed, []frame.Field{field("text", ptr([]byte(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1}`+"\n"))), field("end", ptr(true))}, nil},
		},
	}
}

// The same dialogue natively and in WebAssembly, requests written by both
// codecs: all must be the recorded bytes, which also are what docs/frames.md
// explains.
func TestGoldenFrames(t *testing.T) {
	ctx := context.Background()
	var got strings.Builder
	all := dialogues()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&got, "== %s\n", name)
		native, sandboxed := newNativePort(), newWasmPort(t)
		for _, s := range all[name] {
			request := s.raw
			if request == nil {
				var err error
				if request, err = Encode(s.fields); err != nil {
					t.Fatal(err)
				}
				if own := frame.Append(nil, s.fields); !bytes.Equal(own, request) {
					t.Errorf("%s: the codecs write\n%x\n%x", s.what, own, request)
				}
			}
			answer, _ := native.exchange(ctx, s.op, request)
			other, err := sandboxed.exchange(ctx, s.op, request)
			if err != nil || !bytes.Equal(answer, other) {
				t.Errorf("%s: natively\n%x\nin WebAssembly\n%x, %v", s.what, answer, other, err)
			}
			fmt.Fprintf(&got, "\n-- op %d: %s\n", s.op, s.what)
			spell(t, &got, ">", request)
			spell(t, &got, "<", answer)
		}
		got.WriteByte('\n')
	}
	if *update {
		if err := os.WriteFile(goldenFrames, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFrames)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		a, b := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("line %d:\ngot  %s\nwant %s", i+1, a[i], b[i])
			}
		}
		t.Fatalf("%d lines, want %d", len(a), len(b))
	}
}

// spell writes a frame as bytes and as what they say.
func spell(t *testing.T, w *strings.Builder, arrow string, b []byte) {
	fmt.Fprintf(w, "%s %s\n", arrow, hex.EncodeToString(b))
	d := msgpack.NewDecoder(bytes.NewReader(b))
	n, err := d.DecodeMapLen()
	if err != nil {
		return
	}
	for range n {
		key, err := d.DecodeString()
		if err != nil {
			t.Fatal(err)
		}
		v, err := d.DecodeInterface()
		if err != nil {
			t.Fatal(err)
		}
		if column, ok := v.([]byte); ok {
			v = fmt.Sprintf("%d bytes %q", len(column), column)
		}
		fmt.Fprintf(w, "%s   %s: %v\n", arrow, key, v)
	}
}

package frame

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/stats"
)

// everything has a variable of each type that frames have.
type everything struct {
	Bool     bool
	Byte     uint8
	Int      int
	Int32    int32
	Int64    int64
	Uint32   uint32
	Uint64   uint64
	Float    float64
	Text     string
	Bytes    []byte
	Floats   []float64
	Ints     []int32
	Longs    []int64
	Accepted [config.MaxDrafts]float64
	Dist     stats.Dist
	Digest   [32]byte
}

func (e *everything) fields() []Field {
	return []Field{
		{Name: "bool", Var: &e.Bool}, {Name: "byte", Var: &e.Byte}, {Name: "int", Var: &e.Int}, {Name: "int32", Var: &e.Int32},
		{Name: "int64", Var: &e.Int64}, {Name: "uint32", Var: &e.Uint32}, {Name: "uint64", Var: &e.Uint64}, {Name: "float", Var: &e.Float},
		{Name: "text", Var: &e.Text}, {Name: "bytes", Var: &e.Bytes}, {Name: "floats", Var: &e.Floats}, {Name: "ints", Var: &e.Ints}, {Name: "longs", Var: &e.Longs},
		{Name: "accepted", Var: &e.Accepted}, {Name: "dist", Var: &e.Dist}, {Name: "digest", Var: &e.Digest},
	}
}

var someEverything = []everything{
	{},
	{true, 255, -1 << 62, -5, math.MinInt64, math.MaxUint32, math.MaxUint64, math.Inf(-1), strings.Repeat("ä", 200), []byte{0, 1}, []float64{0.1, math.Copysign(0, -1), math.Pi}, []int32{-1, 7}, []int64{math.MinInt64, 1 << 40}, [5]float64{1, 2, 3, 4, 5}, stats.Dist{Mean: 1, Std: 9}, [32]byte{3, 31: 9}},
	{false, 128, 1 << 62, 40000, 1<<32 + 1, 1 << 16, 1 << 40, 1e-310, strings.Repeat("x", 31), make([]byte, 300), nil, nil, nil, [5]float64{}, stats.Dist{}, [32]byte{}},
	{false, 127, -33, -129, -32769, 256, 1<<63 - 1, -0.5, strings.Repeat("x", 70000), make([]byte, 70000), nil, nil, nil, [5]float64{}, stats.Dist{}, [32]byte{}},
}

func TestRoundTrip(t *testing.T) {
	for i := range someEverything {
		want := someEverything[i]
		b := Append(nil, want.fields())
		var got everything
		if f := Decode(b, got.fields()); f.Code != OK {
			t.Fatalf("%d: %+v", i, f)
		}
		for _, p := range []*everything{&got, &want} { // nil and empty are one
			if len(p.Bytes) == 0 {
				p.Bytes = nil
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d: %s", i, d)
		}
		for n := range len(b) {
			if f := Decode(b[:n], got.fields()); f.Code != BadFrame || f.At > n {
				t.Fatalf("%d: cut to %d of %d bytes: %+v", i, n, len(b), f)
			}
		}
		if f := Decode(append(b, 0xC0), got.fields()); f.Code != BadFrame || f.At != len(b) {
			t.Errorf("%d: a byte too many: %+v", i, f)
		}
	}
}

// pair is a frame with the version and one more pair.
func pair(key string, value ...byte) []byte {
	b := appendNatural(appendText(appendMap(nil, 2), VersionKey), ABI)
	return append(appendText(b, key), value...)
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		frame []byte
		want  Fault
	}{
		"nothing":           {nil, Fault{Code: BadFrame}},
		"no map":            {[]byte{0x91, 1}, Fault{Code: BadFrame}},
		"no version":        {appendMap(nil, 0), Fault{Code: WrongVersion}},
		"another version":   {append(appendText(appendMap(nil, 1), "v"), 2), Fault{Code: WrongVersion, Found: 2}},
		"key no text":       {[]byte{0x81, 1, 1}, Fault{Code: BadFrame, At: 1 + 1}},
		"nested map":        {pair("int", 0x80), Fault{Code: BadFrame, At: 8}},
		"an array":          {pair("int", 0x90), Fault{Code: BadFrame, At: 8}},
		"an extension":      {pair("int", 0xD4, 1, 1), Fault{Code: BadFrame, At: 8}},
		"the unused byte":   {pair("int", 0xC1), Fault{Code: BadFrame, At: 8}},
		"a huge map":        {[]byte{0xDF, 0xFF, 0xFF, 0xFF, 0xFF}, Fault{Code: BadFrame, At: 5}},
		"a huge text":       {pair("int", 0xDB, 0xFF, 0xFF, 0xFF, 0xFF), Fault{Code: BadFrame, At: 8}},
		"unknown key":       {pair("in", 1), Fault{Code: UnknownKey, Name: "in"}},
		"long unknown key":  {pair(strings.Repeat("k", 300), 1), Fault{Code: UnknownKey, Name: strings.Repeat("k", 64)}},
		"nil":               {pair("int", 0xC0), Fault{Code: WrongType, Name: "int"}},
		"text for a number": {pair("int", 0xA0), Fault{Code: WrongType, Name: "int"}},
		"half a number":     {pair("int", appendReal(nil, 0.5)...), Fault{Code: WrongType, Name: "int"}},
		"no number":         {pair("int", appendReal(nil, math.NaN())...), Fault{Code: WrongType, Name: "int"}},
		"infinite":          {pair("int", appendReal(nil, math.Inf(1))...), Fault{Code: NotInRange, Name: "int"}},
		"beyond a byte":     {pair("byte", 0xCD, 1, 0), Fault{Code: NotInRange, Name: "byte"}},
		"below a byte":      {pair("byte", 0xFF), Fault{Code: NotInRange, Name: "byte"}},
		"beyond 32 bits":    {pair("int32", 0xCE, 0x80, 0, 0, 0), Fault{Code: NotInRange, Name: "int32"}},
		"beyond 63 bits":    {pair("int", 0xCF, 0x80, 0, 0, 0, 0, 0, 0, 0), Fault{Code: NotInRange, Name: "int"}},
		"a negative seed":   {pair("uint64", 0xFF), Fault{Code: NotInRange, Name: "uint64"}},
		"an inexact float":  {pair("float", 0xCF, 0, 0x20, 0, 0, 0, 0, 0, 1), Fault{Code: NotInRange, Name: "float"}},
		"odd column":        {pair("floats", 0xC4, 4, 1, 2, 3, 4), Fault{Code: WrongType, Name: "floats"}},
		"odd ints":          {pair("ints", 0xC4, 3, 1, 2, 3), Fault{Code: WrongType, Name: "ints"}},
		"odd longs":         {pair("longs", 0xC4, 4, 1, 2, 3, 4), Fault{Code: WrongType, Name: "longs"}},
		"few rates":         {pair("accepted", append([]byte{0xC4, 32}, make([]byte, 32)...)...), Fault{Code: WrongType, Name: "accepted"}},
		"short dist":        {pair("dist", append([]byte{0xC4, 8}, make([]byte, 8)...)...), Fault{Code: WrongType, Name: "dist"}},
		"short digest":      {pair("digest", append([]byte{0xC4, 31}, make([]byte, 31)...)...), Fault{Code: WrongType, Name: "digest"}},
		"number for a bool": {pair("bool", 1), Fault{Code: WrongType, Name: "bool"}},
		"bytes for text":    {pair("text", 0xC4, 0), Fault{Code: WrongType, Name: "text"}},
		"text for bytes":    {pair("bytes", 0xA0), Fault{Code: WrongType, Name: "bytes"}},
		"the version twice": {pair("v", 1), Fault{Code: TwiceKey, Name: "v"}},
		"a key twice":       {append(append(appendNatural(appendText(appendMap(nil, 3), "v"), 1), 0xA4, 'b', 'o', 'o', 'l', 0xC2), 0xA4, 'b', 'o', 'o', 'l', 0xC2), Fault{Code: TwiceKey, Name: "bool"}},
	} {
		var e everything
		if got := Decode(c.frame, e.fields()); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	var n int
	if got := Decode(pair("other", 1), []Field{{Name: "other", Var: new(bool)}}); got.Code != WrongType {
		t.Errorf("%+v", got)
	}
	if got := Decode(append(appendText(appendMap(nil, 1), "v"), 1), []Field{{Name: "n", Var: &n, Need: true}}); got != (Fault{Code: MissingKey, Name: "n"}) {
		t.Errorf("%+v", got)
	}
}

// JavaScript does not tell whole numbers from floats.
func TestNumbersOfAnyKind(t *testing.T) {
	var e everything
	for _, b := range [][]byte{
		pair("int", appendReal(nil, 1<<62)...), pair("float", 7), pair("float", 0xF9), pair("float", 0xCA, 0x3F, 0, 0, 0), pair("uint64", appendReal(nil, 3)...),
		append(appendReal(appendText(appendMap(nil, 2), "v"), 1), 0xA4, 'b', 'y', 't', 'e', 9),
	} {
		if f := Decode(b, e.fields()); f.Code != OK {
			t.Errorf("%x: %+v", b, f)
		}
	}
	if e.Int != 1<<62 || e.Float != 0.5 || e.Uint64 != 3 || e.Byte != 9 {
		t.Errorf("%+v", e)
	}
}

// snake is a Go name in snake case: words begin with a capital letter, a run
// of capital letters is one word, and units keep their spelling.
func snake(name string) string {
	for _, unit := range []struct{ from, to string }{{"GPUBlocks", "GpuBlocks"}, {"GBs", "Gbs"}, {"TTFTMs", "TtftMs"}, {"D2H", "D2h"}, {"SGLang", "Sglang"}, {"IDs", "Ids"}, {"E2E", "E2e"}, {"H2D", "H2d"}} {
		name = strings.ReplaceAll(name, unit.from, unit.to)
	}
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		if unicode.IsUpper(c) && i > 0 && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// liveOnly are the fields of a KV router that no replay uses, those of its key
// (only its seeds cross), and its classes, which have columns.
var liveOnly = []string{
	"track_output_blocks", "use_kv_events", "replica_sync", "ttl_secs", "event_threads", "skip_initial_worker_wait", "use_remote_indexer", "serve_indexer",
	"session_prefix_index", "shared_cache_multiplier", "shared_cache", "predicted_ttl_secs", "bypass", "tracking_key_file", "tracking_key_id", "policy",
}

// leaves visits every variable below a struct with its dotted name. The
// outcomes of a graph of agents and the script of scaling are tables.
func leaves(prefix string, v reflect.Value, visit func(name string, p any)) {
	for i := range v.NumField() {
		f := v.Field(i)
		name := prefix + snake(v.Type().Field(i).Name)
		switch f.Type() {
		case reflect.TypeFor[[]replay.PlayOutcome](), reflect.TypeFor[[]config.Target](): // tables
			continue
		}
		if own, is := strings.CutPrefix(name, "routing.router."); is && slices.Contains(liveOnly, own) {
			continue
		}
		if v.Type().Field(i).Anonymous {
			name = strings.TrimSuffix(prefix, ".")
		}
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[stats.Dist]() {
			if name != "" {
				name += "."
			}
			leaves(name, f, visit)
			continue
		}
		visit(name, f.Addr().Interface())
	}
}

// Every variable of a run has its field, under its own name.
func TestRunIsComplete(t *testing.T) {
	var r Run
	r.Prefill.Workers = 1
	want := map[string]any{}
	leaves("", reflect.ValueOf(&r).Elem(), func(name string, p any) { want[name] = p })
	for _, f := range r.Fields() {
		p, ok := want[f.Name]
		if !ok {
			t.Errorf("%s is no name of a variable", f.Name)
			continue
		}
		if reflect.ValueOf(p).Pointer() != reflect.ValueOf(f.Var).Pointer() {
			t.Errorf("%s is the field of another variable", f.Name)
		}
		delete(want, f.Name)
	}
	for name := range want {
		t.Errorf("%s has no field; add it to config.go and docs/frames.md", name)
	}
}

// Every number of a summary and of a record has its field.
func TestAnswersAreComplete(t *testing.T) {
	var s replay.Summary
	missing := map[uintptr]string{}
	leaves("", reflect.ValueOf(&s).Elem(), func(name string, p any) { missing[reflect.ValueOf(p).Pointer()] = name })
	for _, f := range SummaryFields(&s) {
		p := reflect.ValueOf(f.Var).Pointer()
		if missing[p] == "" {
			t.Errorf("%s stands twice", f.Name)
		}
		delete(missing, p)
	}
	if len(missing) > 0 {
		t.Errorf("without a field: %v", missing)
	}

	records, admissions := someRecords(7)
	var c RowColumns
	for i := range records {
		r := &records[i]
		c.Add(r, admissions[r.AdmissionStart:][:r.AdmissionCount])
	}
	b := Append(nil, c.Fields())
	var back RowColumns
	if f := Decode(b, back.Fields()); f.Code != OK {
		t.Fatalf("%+v", f)
	}
	gotRecords, gotAdmissions, ok := back.Rows(nil, nil)
	if d := cmp.Diff(records, gotRecords) + cmp.Diff(admissions, gotAdmissions); d != "" || !ok {
		t.Error(d, ok)
	}
	back.AdmissionCount[1]++
	if _, _, ok := back.Rows(nil, nil); ok {
		t.Error("columns that do not belong together are accepted")
	}
}

// someRecords have another value in each variable.
func someRecords(n int) (records []replay.Record, admissions []replay.Admission) {
	x := 0
	for i := range n {
		var r replay.Record
		leaves("", reflect.ValueOf(&r).Elem(), func(name string, p any) {
			x++
			switch p := p.(type) {
			case *int32:
				*p = int32(x)
			case *float64:
				*p = float64(x) / 8
			}
		})
		r.Status = replay.TerminalStatus(i % 4)
		r.AdmissionStart, r.AdmissionCount = int32(len(admissions)), int32(i%3)
		for range r.AdmissionCount {
			admissions = append(admissions, replay.Admission{AtMs: float64(x), Reused: int32(x)})
		}
		records = append(records, r)
	}
	return records, admissions
}

func TestDecodeRun(t *testing.T) {
	r := Run{Replay: config.DefaultReplay(config.SGLang)}
	only := func(fields ...Field) []byte { return Append(nil, fields) }
	for _, b := range [][]byte{
		only(Field{Name: BackendKey, Var: (*uint8)(&r.Engine.Backend)}),
		Append(nil, r.Fields()),
	} {
		got, f := DecodeRun(b)
		if f.Code != OK {
			t.Fatalf("%+v", f)
		}
		if d := cmp.Diff(&r, got); d != "" {
			t.Error(d)
		}
	}
	r.Engine.Timing = config.Timing{Kind: config.Grid, Grid: &config.GridTable{PrefillBatch: []float64{1, 2}, DecodeMs: []float64{3}}}
	got, f := DecodeRun(Append(nil, r.Fields()))
	if d := cmp.Diff(&r, got); d != "" || f.Code != OK {
		t.Error(d, f)
	}
	r.Prefill = config.Pool{Engine: config.Defaults(config.TRTLLM), Workers: 3}
	r.Prefill.Engine.Role, r.Prefill.Engine.NumGPUBlocks = config.Prefill, 99
	x := config.DefaultRouter()
	x.Temperature, x.QueuePolicy, x.TrackingHash, x.TrackingKeyFile, x.TrackingKeyID = 0.5, config.QueueLCFS, config.KeyedXXH3, seedsKey, seedsKey
	x.Policy = &config.RouterPolicy{
		DefaultFamily: "f", Buckets: []config.PolicyBucket{{Name: "short"}, {Name: "long", MinTokens: math.MaxUint64}},
		Classes: []config.PolicyClass{
			{Name: "a", Family: "f", Bucket: "short", Quantum: math.MaxInt64, BusyTokens: config.NoLimit, BusyFraction: 0.25, MaxRequests: 1, MaxTokens: 2, MaxCached: 3},
			{Name: "b", Family: "f", Bucket: "long", Queue: config.QueueWSPT}, {Name: "c"},
		},
	}
	r.Scaling = config.Scaling{Policy: config.Scripted, StartupMs: 5, Script: []config.Target{{AtMs: 1, Prefill: config.KeepWorkers, Decode: 3}, {AtMs: 2.5, Prefill: 4}}}
	r.Samples.EveryMs = 7
	r.Routing = config.Routing{Mode: config.KVRouter, Router: &x, EventLagMs: 3, Tracking: config.Seeds{Block: 1, Chain: math.MaxUint64}, LoadGrid: &config.GridTable{DecodeMs: []float64{1}}}
	got, f = DecodeRun(Append(nil, r.Fields()))
	if d := cmp.Diff(&r, got); d != "" || f.Code != OK {
		t.Error(d, f)
	}
	for _, classes := range [][]config.PolicyClass{x.Policy.Classes[:1], x.Policy.Classes[2:]} { // a list with one empty name
		x.Policy.Classes = classes
		got, f = DecodeRun(Append(nil, r.Fields()))
		if d := cmp.Diff(&r, got); d != "" || f.Code != OK {
			t.Error(d, f)
		}
	}
	for _, name := range []string{classesName, bucketsName, "class_quanta", "class_queues"} { // of another length
		fields := r.Fields()
		for i := range fields {
			if fields[i].Name == policyPrefix+name {
				switch p := fields[i].Var.(type) {
				case *string:
					*p += ",more"
				case *[]int64:
					*p = append(*p, 1)
				case *[]int32:
					*p = []int32{9}
				}
			}
		}
		if _, f := DecodeRun(Append(nil, fields)); f.Code != WrongType {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if _, f := DecodeRun(pair("engine.backend", 0xA0)); f != (Fault{Code: WrongType, Name: BackendKey}) {
		t.Errorf("%+v", f)
	}
	if _, f := DecodeRun(pair("engine.blocksize", 1)); f != (Fault{Code: UnknownKey, Name: "engine.blocksize"}) {
		t.Errorf("%+v", f)
	}
}

func FuzzDecode(f *testing.F) {
	for i := range someEverything {
		f.Add(Append(nil, someEverything[i].fields()))
	}
	r := Run{Replay: config.DefaultReplay(config.VLLM)}
	f.Add(Append(nil, r.Fields()))
	f.Fuzz(func(t *testing.T, b []byte) {
		DecodeRun(b)
		var e everything
		if fault := Decode(b, e.fields()); fault.Code != OK {
			if fault.At < 0 || fault.At > len(b) {
				t.Fatalf("%+v", fault)
			}
			return
		}
		// What was read is written and read again as the same.
		again := Append(nil, e.fields())
		var e2 everything
		if fault := Decode(again, e2.fields()); fault.Code != OK {
			t.Fatalf("%+v", fault)
		}
		if third := Append(nil, e2.fields()); string(third) != string(again) {
			t.Fatalf("%x\n%x", again, third)
		}
	})
}

package gen

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// The published first outputs of splitmix64 with seed 0.
func TestRandIsSplitmix64(t *testing.T) {
	r := NewRand(0)
	for i, want := range []uint64{0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F} {
		if got := r.Uint64(); got != want {
			t.Fatalf("output %d is %#x, want %#x", i, got, want)
		}
	}
}

func TestExpIsAccurate(t *testing.T) {
	for x := -30.0; x <= 30; x += 0.37 {
		got, want := exp(x), math.Exp(x)
		if math.Abs(got-want) > 1e-14*want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
}

func TestDistributions(t *testing.T) {
	const n = 200_000
	r := NewRand(7)
	for _, d := range []struct {
		name           string
		draw           func() float64
		mean, variance float64
	}{
		{"Float64", r.Float64, 0.5, 1.0 / 12},
		{"Exp", r.Exp, 1, 1},
		{"Normal", r.Normal, 0, 1},
		{"Intn(6)", func() float64 { return float64(r.Intn(6)) }, 2.5, 35.0 / 12},
		{"Between(3, 5)", func() float64 { return float64(r.Between(3, 5)) }, 4, 2.0 / 3},
	} {
		sum, squares := 0.0, 0.0
		for range n {
			x := d.draw()
			sum += x
			squares += x * x
		}
		mean := sum / n
		variance := squares/n - mean*mean
		if math.Abs(mean-d.mean) > 0.01 || math.Abs(variance-d.variance) > 0.03 {
			t.Errorf("%s has mean %.4f and variance %.4f, want %.4f and %.4f", d.name, mean, variance, d.mean, d.variance)
		}
	}
}

func conversation(t *testing.T, c ConversationConfig) []Row {
	t.Helper()
	var rows []Row
	if err := Conversation(c, func(row Row) error { rows = append(rows, row); return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}

func digest(t *testing.T, rows []Row) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteRows(&b, rows); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:8])
}

// Traces are named by their arguments in benchmarks and docs, so their bytes
// must not change.
func TestConversationBytesAreFixed(t *testing.T) {
	rows := conversation(t, ConversationConfig{Requests: 2000, Seed: 2, Rate: 3.4, Groups: 50})
	if got, want := digest(t, rows), "27e61ad9943c1f8c"; got != want {
		t.Errorf("digest of the 2,000-request trace is %s, want %s", got, want)
	}
}

func TestConversationShape(t *testing.T) {
	rows := conversation(t, ConversationConfig{Requests: 12_000, Seed: 1, Rate: 3.4, Groups: 50})
	if len(rows) != 12_000 {
		t.Fatalf("%d rows", len(rows))
	}
	seen := map[uint64]bool{}
	input, output, blocks, shared := 0, 0, 0, 0
	last := 0.0
	for i := range rows {
		row := &rows[i]
		if *row.Timestamp < last {
			t.Fatalf("row %d arrives at %v, after a row at %v", i, *row.Timestamp, last)
		}
		last = *row.Timestamp
		if need := (row.input(0) + TraceBlockTokens - 1) / TraceBlockTokens; need != len(row.HashIDs) {
			t.Fatalf("row %d has %d ids for %d tokens", i, len(row.HashIDs), row.input(0))
		}
		for _, id := range row.HashIDs {
			if seen[id] {
				shared++
			}
			seen[id] = true
		}
		blocks += len(row.HashIDs)
		input += row.input(0)
		output += row.output()
	}
	n := float64(len(rows))
	for _, figure := range []struct {
		name        string
		got, lo, hi float64
	}{
		{"mean input", float64(input) / n, 9_500, 12_500},
		{"mean output", float64(output) / n, 270, 330},
		{"share of known blocks", float64(shared) / float64(blocks), 0.55, 0.8},
		{"arrivals per second", n / last * 1000, 3.2, 3.6},
	} {
		if !(figure.got >= figure.lo && figure.got <= figure.hi) {
			t.Errorf("%s is %.3f, want %v to %v", figure.name, figure.got, figure.lo, figure.hi)
		}
	}
}

func TestConversationRefusesBadArguments(t *testing.T) {
	for _, c := range []ConversationConfig{
		{Requests: -1, Rate: 1, Groups: 1},
		{Requests: 1, Rate: 0, Groups: 1},
		{Requests: 1, Rate: math.NaN(), Groups: 1},
		{Requests: 1, Rate: 1, Groups: 0},
	} {
		if Conversation(c, func(Row) error { return nil }) == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestCaseIsAFunctionOfItsSeed(t *testing.T) {
	distinct := map[string]bool{}
	for seed := range uint64(50) {
		a, b := Case(seed), Case(seed)
		head, err := a.MarshalCase()
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.MarshalCase()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(head, again) || !bytes.Equal(a.Trace(), b.Trace()) {
			t.Fatalf("seed %d gives two different cases", seed)
		}
		distinct[string(head)+string(a.Trace())] = true
	}
	if len(distinct) < 50 {
		t.Errorf("50 seeds give only %d different cases", len(distinct))
	}
}

// The parts of the input space the differential test is there for must all
// occur, each often enough to count on.
func TestCasesCoverTheInputSpace(t *testing.T) {
	const cases = 1000
	count := map[string]int{}
	for seed := range uint64(cases) {
		c := Case(seed)
		seen := features(c)
		for name, yes := range seen {
			if yes {
				count[name]++
			}
		}
	}
	for _, name := range []string{
		"one worker", "several workers", "capped", "simulated time limit", "sla", "arrival speedup",
		"no chunking", "no caching", "fifo", "unbounded sequences", "unbounded budget", "length limit",
		"fixed timing", "zero timing", "speedup", "at most 5 blocks", "over 100 blocks",
		"trace block above engine block", "trace block below engine block", "odd ratio",
		"sessions", "delays", "equal times", "unsorted times", "zero output", "planned ids",
		"planned ids that follow the prompt", "repeated prompt", "shared prefix", "no input length",
		"aliases", "unused id", "blank line",
	} {
		if count[name] < cases/100 {
			t.Errorf("%q occurs in %d of %d cases, want at least one in a hundred", name, count[name], cases)
		}
	}
}

// The same for synthetic workloads.
func TestSyntheticCasesCoverTheInputSpace(t *testing.T) {
	const cases = 1000
	count := map[string]int{}
	for seed := range uint64(cases) {
		c, err := FamilyCase(seed, "syn")
		if err != nil {
			t.Fatal(err)
		}
		k := c.Kwargs
		seen := map[string]bool{
			"capped": k["replay_concurrency"] != nil, "poisson": k["request_rate"] != nil, "constant": k["arrival_interval_ms"] != nil,
			"at once": k["arrival_interval_ms"] == 0.0, "own seed": k["arrival_seed"] != nil,
			"requests":      k["turns_per_session"] == nil && k["num_prefix_groups"] == nil && k["shared_prefix_ratio"] == nil && k["inter_turn_delay_ms"] == nil,
			"several turns": k["turns_per_session"] != nil && k["turns_per_session"] != 1, "think time": k["inter_turn_delay_ms"] != nil,
			"shared":       k["num_prefix_groups"] != nil && k["num_prefix_groups"] != 0 && k["shared_prefix_ratio"] != nil && k["shared_prefix_ratio"] != 0.0,
			"share only":   k["num_prefix_groups"] == nil && k["shared_prefix_ratio"] != nil,
			"groups only":  k["num_prefix_groups"] != nil && k["shared_prefix_ratio"] == nil,
			"trtllm":       c.Engine()["backend"] == "trtllm",
			"whole blocks": c.Synthetic["input_tokens"].(int)%c.Engine()["block_size"].(int) == 0,
		}
		for name, yes := range seen {
			if yes {
				count[name]++
			} else {
				count[name] += 0
			}
		}
	}
	for name, n := range count {
		if n < cases/100 {
			t.Errorf("%q occurs in %d of %d cases, want at least one in a hundred", name, n, cases)
		}
	}
}

// The same for two pools.
func TestPoolsCasesCoverTheInputSpace(t *testing.T) {
	const cases = 1000
	count := map[string]int{}
	for seed := range uint64(cases) {
		c, err := FamilyCase(seed, "pd")
		if err != nil {
			t.Fatal(err)
		}
		k := c.Kwargs
		prefill, decode := c.Engine(), c.DecodeEngine()
		ranks := func(key string) any { return k[key].(map[string]any)["dp_size"] }
		format, _ := k["trace_format"].(string)
		for name, yes := range map[string]bool{
			"vllm": prefill["backend"] == "vllm", "trtllm": prefill["backend"] == "trtllm", "sglang": prefill["backend"] == "sglang",
			"ranks": ranks("prefill_engine_args") != nil, "unequal ranks": ranks("prefill_engine_args") != ranks("decode_engine_args"),
			"speculation": decode["aic_nextn"] != nil, "speculation in one pool": decode["aic_nextn"] != nil && prefill["aic_nextn"] == nil,
			"several prefill": k["num_prefill_workers"] != nil, "several decode": k["num_decode_workers"] != nil,
			"bandwidth":   prefill["kv_transfer_bandwidth"] != nil && prefill["kv_transfer_bytes_per_token"] != nil,
			"no transfer": prefill["kv_transfer_bandwidth"] == nil, "missing only": prefill["kv_transfer_timing_mode"] == "destination_missing",
			"unequal pools": prefill["num_gpu_blocks"] != decode["num_gpu_blocks"], "small pool": decode["num_gpu_blocks"].(int) < 12,
			"capped": k["replay_concurrency"] != nil, "simulated time limit": k["max_sim_time_ms"] != nil, "synthetic": c.Synthetic != nil,
			"agents": format == "agentic_mooncake" || format == "weka", "increments": strings.HasPrefix(format, "mooncake"),
			"length limit": decode["max_model_len"] != nil, "zero prefill": zeroMs(prefill, "prefill_ms"), "zero decode": zeroMs(decode, "decode_ms"),
			"no match": prefill["backend"] != decode["backend"] || prefill["block_size"] != decode["block_size"] || decode["worker_type"] != "decode",
		} {
			if yes {
				count[name]++
			} else {
				count[name] += 0
			}
		}
	}
	for name, n := range count {
		if n < cases/100 {
			t.Errorf("%q occurs in %d of %d cases, want at least one in a hundred", name, n, cases)
		}
	}
}

func zeroMs(engine map[string]any, key string) bool {
	timing, _ := engine["timing_model"].(map[string]any)
	ms, _ := toNumber(timing[key])
	return timing[key] != nil && ms == 0
}

func toNumber(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// features names what a case has.
func features(c *ReplayCase) map[string]bool {
	e := c.Engine()
	has := func(m map[string]any, key string) bool { _, ok := m[key]; return ok }
	block, size := e["block_size"].(int), c.Kwargs["trace_block_size"].(int)
	blocks := e["num_gpu_blocks"].(int)
	timing, _ := e["timing_model"].(map[string]any)
	seqs, seqsSet := e["max_num_seqs"]
	budget, budgetSet := e["max_num_batched_tokens"]
	f := map[string]bool{
		"one worker": !has(c.Kwargs, "num_workers"), "several workers": has(c.Kwargs, "num_workers"),
		"capped": has(c.Kwargs, "replay_concurrency"), "simulated time limit": has(c.Kwargs, "max_sim_time_ms"),
		"sla":             has(c.Kwargs, "sla_e2e_ms") || has(c.Kwargs, "sla_ttft_ms") || has(c.Kwargs, "sla_itl_ms"),
		"arrival speedup": has(c.Kwargs, "arrival_speedup_ratio"),
		"no chunking":     e["enable_chunked_prefill"] == false, "no caching": e["enable_prefix_caching"] == false,
		"fifo":                e["preemption_mode"] == "fifo",
		"unbounded sequences": seqsSet && seqs == nil, "unbounded budget": budgetSet && budget == nil,
		"length limit": has(e, "max_model_len"), "fixed timing": timing["type"] == "fixed",
		"zero timing": timing["prefill_ms"] == 0.0 || timing["decode_ms"] == 0.0,
		"speedup":     has(e, "speedup_ratio") || has(e, "decode_speedup_ratio"),

		"at most 5 blocks": blocks <= 5, "over 100 blocks": blocks > 100,
		"trace block above engine block": size > block, "trace block below engine block": size < block,
		"odd ratio": size%block != 0 && block%size != 0,
	}
	times := map[float64]bool{}
	last := math.Inf(-1)
	for i := range c.Rows {
		row := &c.Rows[i]
		f["sessions"] = f["sessions"] || row.SessionID != nil
		f["delays"] = f["delays"] || row.Delay != nil || row.DelayMs != nil
		f["zero output"] = f["zero output"] || row.output() == 0
		f["planned ids"] = f["planned ids"] || row.OutputTokenIDs != nil
		f["no input length"] = f["no input length"] || (row.InputLength == nil && row.InputTokens == nil)
		f["aliases"] = f["aliases"] || row.InputTokens != nil || row.OutputTokens != nil || row.DelayMs != nil
		f["unused id"] = f["unused id"] || (len(row.HashIDs)-1)*size >= row.input(size)
		f["blank line"] = f["blank line"] || row.BlankBefore
		if row.Timestamp != nil {
			f["equal times"] = f["equal times"] || times[*row.Timestamp]
			f["unsorted times"] = f["unsorted times"] || *row.Timestamp < last
			last = *row.Timestamp
			times[last] = true
		}
		for _, other := range c.Rows[:i] {
			f["repeated prompt"] = f["repeated prompt"] || slices.Equal(row.HashIDs, other.HashIDs)
			f["shared prefix"] = f["shared prefix"] || (len(row.HashIDs) > 0 && len(other.HashIDs) > 0 &&
				row.HashIDs[0] == other.HashIDs[0] && !slices.Equal(row.HashIDs, other.HashIDs))
		}
	}
	f["planned ids that follow the prompt"] = follows(c.Rows, size)
	return f
}

// follows reports whether some row's prompt, cut where a trace block ends, is
// another row's prompt followed by at least one whole block it generated.
func follows(rows []Row, size int) bool {
	number := numbers(rows)
	tokens := func(row *Row) []uint32 {
		var list []uint32
		for k := range row.input(size) {
			if at := k / size; at < len(row.HashIDs) {
				list = append(list, number[row.HashIDs[at]])
			}
		}
		return list
	}
	for i := range rows {
		said := append(tokens(&rows[i]), rows[i].OutputTokenIDs...)
		cut := len(said) / size * size
		if cut <= rows[i].input(size) {
			continue
		}
		for j := range rows {
			if next := tokens(&rows[j]); len(next) >= cut && slices.Equal(next[:cut], said[:cut]) {
				return true
			}
		}
	}
	return false
}

func TestCloneIsIndependent(t *testing.T) {
	c := Case(3)
	before, text := string(c.Trace()), must(json.Marshal(c))
	d := c.Clone()
	d.Engine()["block_size"] = 99
	d.Kwargs["num_workers"] = 99
	d.Rows = slices.Delete(d.Rows, 0, 1)
	if string(c.Trace()) != before || !bytes.Equal(must(json.Marshal(c)), text) {
		t.Error("changing a clone changed the case")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

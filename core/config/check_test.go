package config

import (
	"math"
	"reflect"
	"testing"
)

func TestDefaultsAreValid(t *testing.T) {
	for b, want := range map[Backend]int{VLLM: 64, SGLang: 1, TRTLLM: 32} {
		r := DefaultReplay(b)
		if f := r.Check(); !f.OK() {
			t.Errorf("backend %d: %+v", b, f)
		}
		if r.Engine.BlockSize != want || r.Engine.Backend != b {
			t.Errorf("backend %d: block size %d, want %d", b, r.Engine.BlockSize, want)
		}
		if r.SLA.Set() || r.Concurrency != 0 {
			t.Errorf("backend %d: %+v has an SLA or a cap", b, r)
		}
	}
}

// checked is a run with an edit that is right or at fault.
type checked struct {
	name string
	edit func(*Replay)
	want Fault
}

func checkAll(t *testing.T, cases []checked) {
	t.Helper()
	for _, c := range cases {
		r := DefaultReplay(VLLM)
		c.edit(&r)
		if got := r.Check(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	checkAll(t, []checked{
		{"backend", func(r *Replay) { r.Engine.Backend = 3 }, Fault{UnknownValue, FieldBackend}},
		{"role", func(r *Replay) { r.Engine.Role = 3 }, Fault{UnknownValue, FieldRole}},
		{"prefill role", func(r *Replay) { r.Engine.Role = Prefill }, Fault{NotAggregated, FieldRole}},
		{"decode role", func(r *Replay) { r.Engine.Role = Decode }, Fault{NotAggregated, FieldRole}},
		{"preemption", func(r *Replay) { r.Engine.Preemption = 2 }, Fault{UnknownValue, FieldPreemption}},
		{"timing kind", func(r *Replay) { r.Engine.Timing.Kind = External + 1 }, Fault{UnknownValue, FieldTimingKind}},
		{"blocks 0", func(r *Replay) { r.Engine.NumGPUBlocks = 0 }, Fault{NotPositive, FieldNumGPUBlocks}},
		{"blocks negative", func(r *Replay) { r.Engine.NumGPUBlocks = -7 }, Fault{NotPositive, FieldNumGPUBlocks}},
		{"blocks huge", func(r *Replay) { r.Engine.NumGPUBlocks = MaxGPUBlocks + 1 }, Fault{TooLarge, FieldNumGPUBlocks}},
		{"blocks most", func(r *Replay) { r.Engine.NumGPUBlocks = MaxGPUBlocks }, Fault{}},
		{"block size 0", func(r *Replay) { r.Engine.BlockSize = 0 }, Fault{NotPositive, FieldBlockSize}},
		{"block size 1", func(r *Replay) { r.Engine.BlockSize = 1 }, Fault{BelowTwo, FieldBlockSize}},
		{"block size 1 trtllm", func(r *Replay) { r.Engine.Backend, r.Engine.BlockSize = TRTLLM, 1 }, Fault{BelowTwo, FieldBlockSize}},
		{"block size 1 sglang", func(r *Replay) { r.Engine.Backend, r.Engine.BlockSize = SGLang, 1 }, Fault{}},
		{"block size huge", func(r *Replay) { r.Engine.BlockSize = MaxBlockSize + 1 }, Fault{TooLarge, FieldBlockSize}},
		{"tokens huge", func(r *Replay) { r.Engine.NumGPUBlocks, r.Engine.BlockSize = 1<<30, 1<<24 }, Fault{TooLarge, FieldTotalSlots}},
		{"tokens most", func(r *Replay) { r.Engine.NumGPUBlocks, r.Engine.BlockSize = 1<<30, 1<<22 }, Fault{}},
		{"seqs 0", func(r *Replay) { r.Engine.MaxNumSeqs = 0 }, Fault{NotPositive, FieldMaxNumSeqs}},
		{"seqs unbounded", func(r *Replay) { r.Engine.MaxNumSeqs = Unbounded }, Fault{}},
		{"seqs beyond", func(r *Replay) { r.Engine.MaxNumSeqs = Unbounded + 1 }, Fault{TooLarge, FieldMaxNumSeqs}},
		{"budget 0", func(r *Replay) { r.Engine.MaxNumBatchedTokens = 0 }, Fault{NotPositive, FieldMaxNumBatchedTokens}},
		{"budget unbounded", func(r *Replay) { r.Engine.MaxNumBatchedTokens = Unbounded }, Fault{}},
		{"budget beyond", func(r *Replay) { r.Engine.MaxNumBatchedTokens = Unbounded + 1 }, Fault{TooLarge, FieldMaxNumBatchedTokens}},
		{"model len negative", func(r *Replay) { r.Engine.MaxModelLen = -1 }, Fault{Negative, FieldMaxModelLen}},
		{"model len beyond", func(r *Replay) { r.Engine.MaxModelLen = Unbounded + 1 }, Fault{TooLarge, FieldMaxModelLen}},
		{"model len unset", func(r *Replay) { r.Engine.MaxModelLen = 0 }, Fault{}},
		{"speedup negative", func(r *Replay) { r.Engine.SpeedupRatio = -1e-300 }, Fault{NegativeFloat, FieldSpeedupRatio}},
		{"speedup zero", func(r *Replay) { r.Engine.SpeedupRatio = 0 }, Fault{}},
		{"speedup minus zero", func(r *Replay) { r.Engine.SpeedupRatio = math.Copysign(0, -1) }, Fault{}},
		{"decode speedup inf", func(r *Replay) { r.Engine.DecodeSpeedupRatio = inf }, Fault{NotFinite, FieldDecodeSpeedupRatio}},
		{"sglang unchunked", func(r *Replay) { r.Engine.Backend, r.Engine.EnableChunkedPrefill = SGLang, false }, Fault{NeedsChunking, FieldEnableChunkedPrefill}},
		{"vllm unchunked", func(r *Replay) { r.Engine.EnableChunkedPrefill = false }, Fault{}},
		{"ids without events", func(r *Replay) { r.Engine.EmitKVTokenIDs = true }, Fault{NeedsEvents, FieldEmitKVTokenIDs}},
		{"ids with events", func(r *Replay) { r.Engine.EmitKVTokenIDs, r.Engine.EmitKVEvents = true, true }, Fault{}},
		{"fixed prefill", func(r *Replay) { r.Engine.Timing = Timing{Kind: Fixed, PrefillMs: -1, DecodeMs: 0} }, Fault{NegativeFloat, FieldTimingPrefillMs}},
		{"fixed decode", func(r *Replay) { r.Engine.Timing = Timing{Kind: Fixed, PrefillMs: 0, DecodeMs: nan} }, Fault{NotFinite, FieldTimingDecodeMs}},
		{"fixed zero", func(r *Replay) { r.Engine.Timing = Timing{Kind: Fixed, PrefillMs: 0, DecodeMs: 0} }, Fault{}},
		{"polynomial ignores constants", func(r *Replay) { r.Engine.Timing = Timing{Kind: Polynomial, PrefillMs: -1, DecodeMs: nan} }, Fault{}},
		{"dp 0", func(r *Replay) { r.Engine.DPSize = 0 }, Fault{NotPositive, FieldDPSize}},
		{"dp huge", func(r *Replay) { r.Engine.DPSize = MaxRanks + 1 }, Fault{TooLarge, FieldDPSize}},
		{"tp 0", func(r *Replay) { r.Engine.TensorParallelSize = 0 }, Fault{NotPositive, FieldTensorParallelSize}},
		{"tp huge", func(r *Replay) { r.Engine.TensorParallelSize = MaxTensorSize + 1 }, Fault{TooLarge, FieldTensorParallelSize}},
		{"workers 0", func(r *Replay) { r.NumWorkers = 0 }, Fault{NotPositive, FieldNumWorkers}},
		{"workers huge", func(r *Replay) { r.NumWorkers = MaxWorkers + 1 }, Fault{TooLarge, FieldNumWorkers}},
		{"trace block 0", func(r *Replay) { r.TraceBlockSize = 0 }, Fault{NotPositive, FieldTraceBlockSize}},
		{"trace block huge", func(r *Replay) { r.TraceBlockSize = MaxBlockSize + 1 }, Fault{TooLarge, FieldTraceBlockSize}},
		{"cap negative", func(r *Replay) { r.Concurrency = -1 }, Fault{Negative, FieldConcurrency}},
		{"arrival 0", func(r *Replay) { r.ArrivalSpeedup = 0 }, Fault{NotPositiveFloat, FieldArrivalSpeedup}},
		{"arrival negative", func(r *Replay) { r.ArrivalSpeedup = -2 }, Fault{NotPositiveFloat, FieldArrivalSpeedup}},
		{"time cap 0", func(r *Replay) { r.MaxSimTimeMs = 0 }, Fault{}},
		{"time cap unset", func(r *Replay) { r.MaxSimTimeMs = -5 }, Fault{}},
		{"ttft 0", func(r *Replay) { r.SLA.TTFTMs = 0 }, Fault{NotPositiveFloat, FieldSLATTFTMs}},
		{"itl 0", func(r *Replay) { r.SLA.ITLMs = 0 }, Fault{NotPositiveFloat, FieldSLAITLMs}},
		{"e2e 0", func(r *Replay) { r.SLA.E2EMs = 0 }, Fault{NotPositiveFloat, FieldSLAE2EMs}},
		{"e2e and ttft", func(r *Replay) { r.SLA = SLA{5, -1, 5} }, Fault{Exclusive, FieldSLAE2EMs}},
		{"e2e and itl", func(r *Replay) { r.SLA = SLA{-1, 5, 5} }, Fault{Exclusive, FieldSLAE2EMs}},
		{"ttft and itl", func(r *Replay) { r.SLA = SLA{5, 5, -1} }, Fault{}},
		{"interval 0", func(r *Replay) { r.Engine.PrefillScheduleInterval = 0 }, Fault{NotPositive, FieldPrefillScheduleInterval}},
		{"interval trtllm", func(r *Replay) { r.Engine.Backend, r.Engine.PrefillScheduleInterval = TRTLLM, 2 }, Fault{NeedsVLLM, FieldPrefillScheduleInterval}},
		{"interval vllm", func(r *Replay) { r.Engine.PrefillScheduleInterval = 2 }, Fault{}},
		{"drafts negative", func(r *Replay) { r.Engine.MTP.Drafts = -1 }, Fault{Negative, FieldMTPDrafts}},
		{"drafts 6", func(r *Replay) { r.Engine.MTP.Drafts = 6 }, Fault{TooLarge, FieldMTPDrafts}},
		{"drafts 5", func(r *Replay) { r.Engine.MTP.Drafts = 5 }, Fault{}},
		{"drafts and decode speed-up", func(r *Replay) { r.Engine.MTP.Drafts, r.Engine.DecodeSpeedupRatio = 1, 2 }, Fault{Exclusive, FieldMTPDrafts}},
		{"rate above 1", func(r *Replay) { r.Engine.MTP.AcceptRates[1] = 1.5 }, Fault{NotAChance, FieldMTPAcceptRates}},
		{"rate below 0", func(r *Replay) { r.Engine.MTP.AcceptRates[0] = -0.5 }, Fault{NotAChance, FieldMTPAcceptRates}},
		{"rate nan", func(r *Replay) { r.Engine.MTP.AcceptRates[4] = nan }, Fault{NotFinite, FieldMTPAcceptRates}},
		{"transfer timing", func(r *Replay) { r.Engine.Transfer.Timing = 2 }, Fault{UnknownValue, FieldTransferTiming}},
		{"transfer bytes", func(r *Replay) { r.Engine.Transfer.BytesPerToken = -1 }, Fault{Negative, FieldTransferBytes}},
		{"transfer bandwidth", func(r *Replay) { r.Engine.Transfer.BandwidthGBs = -1 }, Fault{NegativeFloat, FieldTransferBandwidth}},
		{"cache bytes", func(r *Replay) { r.Engine.KVCacheBytesPerToken = -1 }, Fault{Negative, FieldKVCacheBytes}},
		{"host offload", func(r *Replay) { offload(r) }, Fault{}},
		{"host blocks negative", func(r *Replay) { offload(r).HostOffload.Blocks = -1 }, Fault{Negative, FieldHostOffload}},
		{"host blocks huge", func(r *Replay) { offload(r).HostOffload.Blocks = MaxGPUBlocks + 1 }, Fault{TooLarge, FieldHostOffload}},
		{"host latency", func(r *Replay) { offload(r).HostOffload.FirstByteLatencyMs = -1 }, Fault{NegativeFloat, FieldHostOffload}},
		{"host trtllm", func(r *Replay) { offload(r).Backend = TRTLLM }, Fault{NeedsVLLM, FieldHostOffload}},
		{"host without cache", func(r *Replay) { offload(r).EnablePrefixCaching = false }, Fault{NeedsPrefixCaching, FieldHostOffload}},
		{"host and drafts", func(r *Replay) { offload(r).MTP.Drafts = 1 }, Fault{Exclusive, FieldHostOffload}},
		{"host scope", func(r *Replay) { offload(r).HostOffload.Scope = ClusterShared + 1 }, Fault{UnknownValue, FieldHostOffload}},
		{"host shared", func(r *Replay) { offload(r).HostOffload.Scope = ClusterShared }, Fault{}},
		{"host shared bandwidth", func(r *Replay) { offload(r).HostOffload.SharedH2DGBs = -1 }, Fault{NegativeFloat, FieldHostOffload}},
		{"host bytes huge", func(r *Replay) { offload(r).KVCacheBytesPerToken = math.MaxInt64/64/8 + 1 }, Fault{TooLarge, FieldKVCacheBytes}},
		{"host bytes most", func(r *Replay) { offload(r).KVCacheBytesPerToken = math.MaxInt64 / 64 / 8 }, Fault{}},
		{"host without bytes", func(r *Replay) { offload(r).KVCacheBytesPerToken = 0 }, Fault{NotPositive, FieldKVCacheBytes}},
		{"schedule policy", func(r *Replay) { sglang(r).SGLang.Policy = 2 }, Fault{UnknownValue, FieldSchedulePolicy}},
		{"prefill tokens 0", func(r *Replay) { sglang(r).SGLang.MaxPrefillTokens = 0 }, Fault{NotPositive, FieldMaxPrefillTokens}},
		{"prefill tokens beyond", func(r *Replay) { sglang(r).SGLang.MaxPrefillTokens = Unbounded + 1 }, Fault{TooLarge, FieldMaxPrefillTokens}},
		{"chunk 0", func(r *Replay) { sglang(r).SGLang.ChunkedPrefillSize = 0 }, Fault{NotPositive, FieldChunkedPrefillSize}},
		{"clip negative", func(r *Replay) { sglang(r).SGLang.ClipMaxNewTokens = -1 }, Fault{Negative, FieldClipMaxNewTokens}},
		{"clip 0", func(r *Replay) { sglang(r).SGLang.ClipMaxNewTokens = 0 }, Fault{}},
		{"conservativeness", func(r *Replay) { sglang(r).SGLang.Conservativeness = -0.5 }, Fault{NegativeFloat, FieldConservativeness}},
		{"clip beyond", func(r *Replay) { sglang(r).SGLang.ClipMaxNewTokens = Unbounded + 1 }, Fault{TooLarge, FieldClipMaxNewTokens}},
		{"vllm does not read them", func(r *Replay) { r.Engine.SGLang = SGLangOptions{Policy: 9, Conservativeness: -1} }, Fault{}},
		{"decode interval negative", func(r *Replay) { sglang(r).SGLang.PrefillDecodeInterval = -1 }, Fault{Negative, FieldPrefillDecodeInterval}},
		{"decode interval", func(r *Replay) { sglang(r).SGLang.PrefillDecodeInterval = 2 }, Fault{}},
		{"decode interval vllm", func(r *Replay) { r.Engine.SGLang.PrefillDecodeInterval = 2 }, Fault{NeedsSGLang, FieldPrefillDecodeInterval}},
		{"lag negative", func(r *Replay) { r.Routing.EventLagMs = -1 }, Fault{NegativeFloat, FieldKVEventLag}},
		{"predictions of nothing", func(r *Replay) { r.Routing = Routing{Mode: KVRouter, Router: new(Router), LoadGrid: &GridTable{}} }, Fault{TooFew, FieldGridPrefillBatch}},
		{"mode unknown", func(r *Replay) { r.Routing.Mode = Direct + 1 }, Fault{UnknownValue, FieldRouterMode}},
		{"mode without its router", func(r *Replay) { r.Routing.Mode = KVRouter }, Fault{UnknownValue, FieldRouterMode}},
		{"host memory and its router", func(r *Replay) {
			offload(r)
			r.Routing.Mode, r.Routing.Router = KVRouter, &Router{}
		}, Fault{}},
		{"shared host memory and its router", func(r *Replay) {
			offload(r).HostOffload.Scope = ClusterShared
			r.Routing.Mode, r.Routing.Router = KVRouter, &Router{}
		}, Fault{Exclusive, FieldRouterMode}},
		{"least loaded", func(r *Replay) { r.Routing.Mode = LeastLoaded }, Fault{}},
		{"first fault wins", func(r *Replay) { r.Engine.BlockSize, r.Engine.SpeedupRatio, r.NumWorkers = 1, nan, 0 }, Fault{BelowTwo, FieldBlockSize}},
	})
}

func TestCheckPools(t *testing.T) {
	checkAll(t, []checked{
		{"two pools", twoPools, Fault{}},
		{"two pools of prefill", func(r *Replay) { twoPools(r); r.Engine.Role = Prefill }, Fault{NotThisRole, FieldRole}},
		{"two pools of decode", func(r *Replay) { twoPools(r); r.Prefill.Engine.Role = Decode }, Fault{NotThisRole, FieldPrefillRole}},
		{"pools of two block sizes", func(r *Replay) { twoPools(r); r.Prefill.Engine.BlockSize = 32 }, Fault{Unlike, FieldBlockSize}},
		{"pools of two backends", func(r *Replay) { twoPools(r); r.Prefill.Engine.Backend = TRTLLM }, Fault{Unlike, FieldBackend}},
		{"a pool with host memory", func(r *Replay) { offload(r); twoPools(r) }, Fault{NeedsAggregated, FieldHostOffload}},
		{"a pool that is wrong", func(r *Replay) { twoPools(r); r.Prefill.Engine.NumGPUBlocks = 0 }, Fault{NotPositive, FieldNumGPUBlocks}},
		{"a pool below zero", func(r *Replay) { twoPools(r); r.Prefill.Workers = -1 }, Fault{NotPositive, FieldNumPrefillWorkers}},
		{"a pool too large", func(r *Replay) { twoPools(r); r.Prefill.Workers = MaxWorkers + 1 }, Fault{TooLarge, FieldNumPrefillWorkers}},
		{"pools and a router", func(r *Replay) { twoPools(r); r.Routing.Mode, r.Routing.Router = KVRouter, &Router{} }, Fault{}},
		{"links unknown", func(r *Replay) { twoPools(r); r.Sharing = SharedByNode + 1 }, Fault{UnknownValue, FieldLinkSharing}},
		{"empty nodes", func(r *Replay) { twoPools(r); r.PrefillPerNode = 0 }, Fault{NotPositive, FieldPrefillPerNode}},
		{"pools by lot", func(r *Replay) { twoPools(r); r.Routing.Mode = Random }, Fault{NeedsAggregated, FieldRouterMode}},
		{"a role without pools", func(r *Replay) { r.Engine.Role = Decode }, Fault{NotAggregated, FieldRole}},
	})
}

func TestCheckChunk(t *testing.T) {
	cases := []struct {
		backend             Backend
		block, chunk, ranks int
		want                Fault
	}{
		{SGLang, 4, 8192, 1, Fault{}},
		{SGLang, 3, 8192, 1, Fault{NotAMultiple, FieldChunkedPrefillSize}},
		{VLLM, 3, 8192, 1, Fault{}},
		{SGLang, 4, 4, 5, Fault{NotPositive, FieldChunkedPrefillSize}},
		{SGLang, 4, 4, 4, Fault{}},
	}
	for _, c := range cases {
		e := Defaults(c.backend)
		e.BlockSize, e.SGLang.ChunkedPrefillSize, e.DPSize = c.block, c.chunk, c.ranks
		if got := e.CheckChunk(); got != c.want {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

// sglang makes a run one of SGLang with blocks of 4 tokens.
func sglang(r *Replay) *Engine {
	r.Engine.Backend, r.Engine.BlockSize = SGLang, 4
	return &r.Engine
}

// offload gives a run a pool of host memory.
func offload(r *Replay) *Engine {
	r.Engine.HostOffload, r.Engine.KVCacheBytesPerToken = DefaultHostOffload(8), 100
	return &r.Engine
}

// twoPools makes a run one of two pools.
func twoPools(r *Replay) {
	r.Prefill = Pool{Engine: r.Engine, Workers: 1}
	r.Prefill.Engine.Role, r.Engine.Role = Prefill, Decode
}

// Every float of a run must be refused when it is NaN or infinite, also those
// added later.
func TestCheckRefusesNonFinite(t *testing.T) {
	floats := 0
	var walk func(path []int, typ reflect.Type)
	walk = func(path []int, typ reflect.Type) {
		for i := range typ.NumField() {
			at := append(append([]int{}, path...), i)
			switch f := typ.Field(i); f.Type.Kind() {
			case reflect.Struct:
				walk(at, f.Type)
			case reflect.Float64:
				floats++
				for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
					r := DefaultReplay(VLLM)
					r.Engine.Timing.Kind = Fixed
					if path != nil && reflect.TypeOf(r).Field(path[0]).Name == "Prefill" {
						twoPools(&r)
					}
					reflect.ValueOf(&r).Elem().FieldByIndex(at).SetFloat(x)
					if got := r.Check(); got.Code != NotFinite {
						t.Errorf("%s = %v: %+v", typ.Field(i).Name, x, got)
					}
				}
			}
		}
	}
	walk(nil, reflect.TypeOf(Replay{}))
	if floats < 9 {
		t.Errorf("only %d floats seen", floats)
	}
}

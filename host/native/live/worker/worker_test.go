package worker_test

import (
	"math"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// configs are engines that differ in what a driver sees of them.
func configs() map[string]config.Engine {
	m := map[string]config.Engine{
		"vllm": config.Defaults(config.VLLM), "trtllm": config.Defaults(config.TRTLLM), "sglang": config.Defaults(config.SGLang),
	}
	small := config.Defaults(config.VLLM)
	small.NumGPUBlocks, small.MaxNumSeqs = 900, 16
	m["preemption"] = small
	pages := config.Defaults(config.SGLang)
	pages.BlockSize, pages.NumGPUBlocks = 16, 4000
	m["sglang pages"] = pages
	ranks := config.Defaults(config.VLLM)
	ranks.DPSize = 2
	m["ranks"] = ranks
	host := small
	host.KVCacheBytesPerToken = 1e5
	host.HostOffload = config.DefaultHostOffload(4000)
	m["host memory"] = host
	mtp := config.Defaults(config.VLLM)
	mtp.MTP.Drafts, mtp.MTP.AcceptRates = 2, config.DefaultAcceptRates()
	m["speculation"] = mtp
	quick := config.Defaults(config.VLLM)
	quick.SpeedupRatio = 20
	m["speedup"] = quick
	return m
}

// Stepped at the times it asks for, a worker gives every token at the time at
// which a replay of the same arrivals does.
func TestEqualsReplay(t *testing.T) {
	for name, cfg := range configs() {
		t.Run(name, func(t *testing.T) {
			arrivals, want := offline(t, cfg, 150)
			compare(t, drive(t, cfg, arrivals, 0), want, 0)
		})
	}
}

// Called late, it loses nothing: a pass begins when it should have.
func TestLateCallsDoNotAddUp(t *testing.T) {
	arrivals, want := offline(t, config.Defaults(config.VLLM), 150)
	compare(t, drive(t, config.Defaults(config.VLLM), arrivals, 4), want, 0)
}

// drive steps a worker through arrivals, each call lateMs after the time that
// was named. Requests say when they came.
func drive(t testing.TB, cfg config.Engine, arrivals []arrival, lateMs float64) []record {
	t.Helper()
	w := worker.New(cfg, 0, worker.Options{})
	records := make([]record, len(arrivals))
	wake, next := math.Inf(1), 0
	for steps := 0; next < len(arrivals) || w.Active() > 0; steps++ {
		if steps == 1e6 || next == len(arrivals) && math.IsInf(wake, 1) {
			t.Fatalf("%d requests never end", w.Active())
		}
		if next < len(arrivals) && arrivals[next].atMs <= wake {
			a := arrivals[next]
			w.Advance(a.atMs)
			w.Submit(worker.Request{UUID: uuid(next + 1), Rank: worker.AnyRank, Tokens: a.prompt, MaxOutput: a.output}, &records[next], a.atMs)
			next++
			wake = w.Advance(a.atMs)
			continue
		}
		wake = w.Advance(wake + lateMs)
	}
	return records
}

func compare(t *testing.T, got []record, want []replay.Record, tolerance float64) {
	t.Helper()
	for i, r := range want {
		g := got[i]
		if g.ends != 1 || g.end == worker.Completed != (r.Status == replay.Completed) {
			t.Fatalf("request %d: %d ends, the last %d, want status %d", i, g.ends, g.end, r.Status)
		}
		if r.Status != replay.Completed {
			continue
		}
		if g.tokens != int(r.OutputLength) || g.cached > int(r.ReusedTokens) {
			t.Fatalf("request %d: %d tokens, %d cached, want %d, %d", i, g.tokens, g.cached, r.OutputLength, r.ReusedTokens)
		}
		for _, x := range []struct{ got, want float64 }{
			{g.firstMs, r.FirstTokenMs}, {g.secondMs, r.SecondTokenMs}, {g.lastMs, r.LastTokenMs}, {g.endMs, r.TerminalMs},
		} {
			if math.Abs(x.got-x.want) > tolerance {
				t.Fatalf("request %d: first, second, last token and end at %v, %v, %v, %v, want %v, %v, %v, %v", i,
					g.firstMs, g.secondMs, g.lastMs, g.endMs, r.FirstTokenMs, r.SecondTokenMs, r.LastTokenMs, r.TerminalMs)
			}
		}
	}
}

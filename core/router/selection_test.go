package router

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/rng"
)

func golden(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/router/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

type goldenSelection struct {
	Case      int
	BlockSize int    `json:"block_size"`
	Tokens    uint64 `json:"isl_tokens"`
	Label     string `json:"worker_label"`
	Track     bool   `json:"track_prefill_tokens"`
	Config    struct {
		Credit  float64 `json:"overlap_score_credit"`
		Decay   float64 `json:"overlap_score_credit_decay"`
		Scale   float64 `json:"prefill_load_scale"`
		Request float64 `json:"decode_active_request_weight"`
		Host    float64 `json:"host_cache_hit_weight"`
		Disk    float64 `json:"disk_cache_hit_weight"`
		Shared  float64 `json:"shared_cache_multiplier"`
	}
	Workers []goldenWorker
	Costs   []struct {
		Worker, Rank int
		Cost         float64
		Bits         string `json:"cost_bits"`
	}
	Tastes map[string]float64 `json:"preferred_taints"`
	Shared [][2]uint64        `json:"shared_ranges"`
	Chosen struct {
		Worker    int
		Rank      int `json:"dp_rank"`
		Cached    uint64
		Tokens    uint64  `json:"cached_tokens"`
		Effective float64 `json:"effective_overlap_blocks"`
		MostRaw   uint64  `json:"max_raw_cached_tokens"`
		Raw       uint64  `json:"selected_raw_cached_tokens"`
		Required  uint64  `json:"required_blocks"`
		Potential int     `json:"potential_decode_blocks"`
	}
}

type goldenWorker struct {
	Worker    int
	Rank      int `json:"dp_rank"`
	Device    *int32
	Host      *int32
	Disk      *int32
	Effective *float64 `json:"effective_overlap_blocks"`
	Cached    *uint64  `json:"effective_cached_tokens"`
	Tierless  bool
	Taints    []string
	Load      *struct {
		Tokens   uint64 `json:"active_prefill_tokens"`
		Blocks   int    `json:"active_decode_blocks"`
		More     int    `json:"additional_active_blocks"`
		Requests int    `json:"active_requests"`
	}
}

func or[T any](p *T) (x T) {
	if p != nil {
		x = *p
	}
	return x
}

func (w goldenWorker) candidate(tastes map[string]float64) candidate {
	c := candidate{worker: int32(w.Worker), rank: int32(w.Rank), factor: 1}
	c.hits = hits{device: or(w.Device), host: or(w.Host), disk: or(w.Disk)}
	if w.Load != nil {
		c.known, c.tokens, c.blocks, c.requests = true, w.Load.Tokens, w.Load.Blocks+w.Load.More, w.Load.Requests
	}
	sum, some := 0.0, false
	for taint, weight := range tastes {
		if slices.Contains(w.Taints, taint) {
			sum, some = sum+float64(float32(weight)), true
		}
	}
	if some {
		c.factor = Taste(sum)
	}
	return c
}

// The reference's exact costs and choices.
func TestGoldenSelection(t *testing.T) {
	var file struct{ Cases []goldenSelection }
	golden(t, "selection.json", &file)
	costs := 0
	for _, c := range file.Cases {
		costs += checkSelection(t, c)
	}
	if costs != 193 {
		t.Errorf("%d costs, want 193", costs)
	}
}

func checkSelection(t *testing.T, c goldenSelection) int {
	t.Helper()
	cfg := config.DefaultRouter()
	cfg.OverlapCredit, cfg.OverlapCreditDecay, cfg.PrefillLoadScale = c.Config.Credit, c.Config.Decay, c.Config.Scale
	cfg.ActiveRequestWeight, cfg.HostHitWeight, cfg.DiskHitWeight = c.Config.Request, c.Config.Host, c.Config.Disk
	cfg.TrackPrefillTokens = c.Track
	var candidates []candidate
	for _, w := range c.Workers {
		candidates = append(candidates, w.candidate(c.Tastes))
	}
	p := newPricing(&cfg, c.BlockSize, c.Tokens, candidates)
	p.decode = c.Label == "decode"
	var costs []float64
	mostRaw := uint64(0)
	for i, w := range c.Workers {
		x := &candidates[i]
		device := float64(x.hits.device)
		if w.Tierless {
			device = or(w.Effective)
		}
		shared := 0.0
		if c.Shared != nil {
			shared = c.Config.Shared * float64(beyond(c.Shared, uint64(math.Round(device))))
		}
		costs = append(costs, p.cost(x, or(w.Cached), device, float64(x.hits.host), float64(x.hits.disk), shared))
		bits, _ := strconv.ParseUint(c.Costs[i].Bits, 16, 64)
		if math.Float64bits(costs[i]) != bits {
			t.Errorf("case %d: worker %d costs %v, want %v", c.Case, w.Worker, costs[i], c.Costs[i].Cost)
		}
		if w.Cached != nil && (!w.Tierless && x.hits.effective(&cfg) != or(w.Effective) || x.hits.cached(&cfg, c.BlockSize) != *w.Cached) {
			t.Errorf("case %d: worker %d has %v blocks, %d tokens, want %v, %d", c.Case, w.Worker,
				x.hits.effective(&cfg), x.hits.cached(&cfg, c.BlockSize), or(w.Effective), *w.Cached)
		}
		mostRaw = max(mostRaw, x.hits.raw(c.BlockSize))
		if !w.Tierless && shared == 0 && x.hits.some() && p.price(x) != costs[i] {
			t.Errorf("case %d: worker %d is priced %v, costs %v", c.Case, w.Worker, p.price(x), costs[i])
		}
	}
	var lots rng.Wyrand
	k := choose(costs, 0, &lots, nil)
	x, got, want := candidates[k], c.Chosen, c.Chosen
	got.Worker, got.Rank = int(x.worker), int(x.rank)
	got.Tokens, got.Effective = or(c.Workers[k].Cached), or(c.Workers[k].Effective)
	got.Required = ceilDiv(c.Tokens, c.BlockSize)
	got.Potential = x.blocks + int(got.Required)
	if !c.Workers[k].Tierless {
		got.Raw, got.MostRaw = x.hits.raw(c.BlockSize), mostRaw
	}
	if got != want {
		t.Errorf("case %d: chosen %+v, want %+v", c.Case, got, want)
	}
	return len(costs)
}

// The reference's draws among equals and by temperature.
func TestGoldenStreams(t *testing.T) {
	var file struct {
		Streams []struct {
			Blocks      [][3]int `json:"active_decode_blocks"` // worker, rank, blocks
			BlockSize   int      `json:"block_size"`
			Tokens      uint64   `json:"isl_tokens"`
			Picks       [][2]int
			Seed        uint64
			Temperature float64
		} `json:"seeded_streams"`
	}
	golden(t, "selection.json", &file)
	picks := 0
	for _, s := range file.Streams {
		lots := rng.Wyrand(s.Seed)
		cfg := config.DefaultRouter()
		var candidates []candidate
		for _, b := range s.Blocks {
			candidates = append(candidates, candidate{worker: int32(b[0]), rank: int32(b[1]), known: true, blocks: b[2], factor: 1})
		}
		var costs, chances []float64
		p := newPricing(&cfg, s.BlockSize, s.Tokens, candidates)
		for i := range candidates {
			costs = append(costs, p.price(&candidates[i]))
		}
		for i, want := range s.Picks {
			c := candidates[choose(costs, s.Temperature, &lots, &chances)]
			if got := [2]int{int(c.worker), int(c.rank)}; got != want {
				t.Fatalf("seed %d, temperature %v, pick %d: %v, want %v", s.Seed, s.Temperature, i, got, want)
			}
			picks++
		}
	}
	if picks != 448 {
		t.Errorf("%d picks, want 448", picks)
	}
}

// Costs without end or meaning choose nobody; huge ones are scaled.
func TestChooseAtTheEdges(t *testing.T) {
	var lots rng.Wyrand
	var chances []float64
	for _, costs := range [][]float64{{1, math.NaN()}, {math.Inf(1)}, {math.Inf(-1), 2}} {
		for _, temperature := range []float64{0, 1} {
			if k := choose(costs, temperature, &lots, &chances); k != -1 {
				t.Errorf("%v: %d", costs, k)
			}
		}
	}
	if lots != 0 {
		t.Error("a lot was drawn")
	}
	counts := [2]int{}
	for range 1000 {
		counts[choose([]float64{-math.MaxFloat64, math.MaxFloat64}, 1, &lots, &chances)]++
	}
	if counts[0] < 650 || counts[1] < 200 { // 1 to 1/e
		t.Errorf("%v", counts)
	}
	before := lots
	if choose([]float64{3, 1, 2}, 0, &lots, nil); lots != before {
		t.Error("a lot was drawn for a lone minimum")
	}
}

package config

import (
	"math"
	"testing"
)

func profileTable() *ProfileTable {
	return &ProfileTable{
		PrefillISL:           []float64{4, 8},
		PrefillTTFTMs:        []float64{10, 14},
		DecodeActiveKVTokens: []float64{8, 16},
		DecodeContextLength:  []float64{4, 8, 16},
		DecodeITLMs:          []float64{1, 2, 4, 3, 5, 9},
	}
}

func gridTable() *GridTable {
	return &GridTable{
		PrefillBatch:  []float64{1, 2},
		PrefillISL:    []float64{1, 16, 64},
		PrefillPrefix: []float64{0, 512},
		PrefillMs:     []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
		DecodeBatch:   []float64{1, 2},
		DecodeContext: []float64{1, 64},
		DecodeMs:      []float64{1, 2, 3, 4},
	}
}

func TestCheckProfile(t *testing.T) {
	at := func(c Code, f Field, i int) TableFault { return TableFault{Fault{c, f}, i} }
	cases := []struct {
		name string
		edit func(*ProfileTable)
		want TableFault
	}{
		{"good", func(*ProfileTable) {}, TableFault{}},
		{"negative axis and values", func(p *ProfileTable) { p.PrefillISL[0], p.DecodeITLMs[3] = -4, -1 }, TableFault{}},
		{"no axis", func(p *ProfileTable) { p.PrefillISL = nil }, at(TooFew, FieldProfilePrefillISL, 0)},
		{"one point", func(p *ProfileTable) { p.DecodeContextLength = p.DecodeContextLength[:1] }, at(TooFew, FieldProfileDecodeContext, 0)},
		{"equal points", func(p *ProfileTable) { p.PrefillISL[1] = 4 }, at(NotRising, FieldProfilePrefillISL, 1)},
		{"falling", func(p *ProfileTable) { p.DecodeContextLength[2] = 5 }, at(NotRising, FieldProfileDecodeContext, 2)},
		{"falling kv", func(p *ProfileTable) { p.DecodeActiveKVTokens[1] = 7 }, at(NotRising, FieldProfileDecodeActiveKV, 1)},
		{"nan axis", func(p *ProfileTable) { p.DecodeActiveKVTokens[1] = math.NaN() }, at(NotFinite, FieldProfileDecodeActiveKV, 1)},
		{"infinite axis", func(p *ProfileTable) { p.PrefillISL[1] = math.Inf(1) }, at(NotFinite, FieldProfilePrefillISL, 1)},
		{"nan value", func(p *ProfileTable) { p.DecodeITLMs[4] = math.NaN() }, at(NotFinite, FieldProfileDecodeITL, 4)},
		{"infinite value", func(p *ProfileTable) { p.PrefillTTFTMs[1] = math.Inf(-1) }, at(NotFinite, FieldProfilePrefillTTFT, 1)},
		{"few values", func(p *ProfileTable) { p.PrefillTTFTMs = p.PrefillTTFTMs[:1] }, at(WrongLength, FieldProfilePrefillTTFT, 0)},
		{"few values in the plane", func(p *ProfileTable) { p.DecodeITLMs = p.DecodeITLMs[:5] }, at(WrongLength, FieldProfileDecodeITL, 0)},
		{"first fault wins", func(p *ProfileTable) { p.DecodeITLMs, p.PrefillISL[1] = nil, 3 }, at(NotRising, FieldProfilePrefillISL, 1)},
	}
	for _, c := range cases {
		p := profileTable()
		c.edit(p)
		if got := p.Check(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		e := Defaults(VLLM)
		e.Timing = Timing{Kind: Profile, Profile: p}
		if got := e.Check(); got != c.want.Fault {
			t.Errorf("%s: the engine's check says %+v, want %+v", c.name, got, c.want.Fault)
		}
	}
}

func TestCheckGrid(t *testing.T) {
	at := func(c Code, f Field, i int) TableFault { return TableFault{Fault{c, f}, i} }
	cases := []struct {
		name string
		edit func(*GridTable)
		want TableFault
	}{
		{"good", func(*GridTable) {}, TableFault{}},
		{"zero duration", func(g *GridTable) { g.DecodeMs[0] = 0 }, TableFault{}},
		{"one batch", func(g *GridTable) { g.PrefillBatch = g.PrefillBatch[:1] }, at(TooFew, FieldGridPrefillBatch, 0)},
		{"one isl", func(g *GridTable) { g.PrefillISL = g.PrefillISL[:1] }, at(TooFew, FieldGridPrefillISL, 0)},
		{"no prefix", func(g *GridTable) { g.PrefillPrefix = nil }, at(TooFew, FieldGridPrefillPrefix, 0)},
		{"falling", func(g *GridTable) { g.PrefillISL[2] = 3 }, at(NotRising, FieldGridPrefillISL, 2)},
		{"equal batches", func(g *GridTable) { g.DecodeBatch[1] = 1 }, at(NotRising, FieldGridDecodeBatch, 1)},
		{"negative axis", func(g *GridTable) { g.DecodeContext[0] = -1 }, at(NegativeFloat, FieldGridDecodeContext, 0)},
		{"nan", func(g *GridTable) { g.PrefillMs[7] = math.NaN() }, at(NotFinite, FieldGridPrefillMs, 7)},
		{"negative", func(g *GridTable) { g.PrefillMs[11] = -1e-9 }, at(NegativeFloat, FieldGridPrefillMs, 11)},
		{"negative decode", func(g *GridTable) { g.DecodeMs[2] = -1 }, at(NegativeFloat, FieldGridDecodeMs, 2)},
		{"few", func(g *GridTable) { g.PrefillMs = g.PrefillMs[:11] }, at(WrongLength, FieldGridPrefillMs, 0)},
		{"many", func(g *GridTable) { g.DecodeMs = append(g.DecodeMs, 1) }, at(WrongLength, FieldGridDecodeMs, 0)},
	}
	for _, c := range cases {
		g := gridTable()
		c.edit(g)
		if got := g.Check(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		e := Defaults(VLLM)
		e.Timing = Timing{Kind: Grid, Grid: g}
		if got := e.Check(); got != c.want.Fault {
			t.Errorf("%s: the engine's check says %+v, want %+v", c.name, got, c.want.Fault)
		}
	}
}

func TestCheckTableKinds(t *testing.T) {
	for _, c := range []struct {
		timing Timing
		want   Fault
	}{
		{Timing{Kind: Profile}, Fault{NoTable, FieldProfile}},
		{Timing{Kind: Grid}, Fault{NoTable, FieldGrid}},
		{Timing{Kind: Grid, Profile: profileTable()}, Fault{NoTable, FieldGrid}},
		{Timing{Kind: External}, Fault{}},
		{Timing{Kind: Polynomial, Profile: &ProfileTable{}}, Fault{}},
	} {
		e := Defaults(VLLM)
		e.Timing = c.timing
		if got := e.Check(); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.timing, got, c.want)
		}
	}
}

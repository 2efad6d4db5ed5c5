package rng

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
)

// The reference's own draws.
func TestGoldenWyrand(t *testing.T) {
	text, err := os.ReadFile("../../testdata/router/selection.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		RNG struct {
			Seed   uint64
			U64    []string
			Below  []uint64                `json:"usize_0_to_n_for_n_2_to_33"`
			Floats []struct{ Bits string } `json:"f64"`
		}
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	hex := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	g := golden.RNG
	if len(g.U64) != 8 || len(g.Below) != 32 || len(g.Floats) != 8 {
		t.Fatalf("%+v", g)
	}
	s := Wyrand(g.Seed)
	for i, want := range g.U64 {
		if got := s.Uint64(); got != hex(want) {
			t.Errorf("draw %d: %x, want %s", i, got, want)
		}
	}
	s = Wyrand(g.Seed)
	for i, want := range g.Below {
		if got := s.Below(uint64(i) + 2); got != want {
			t.Errorf("draw below %d: %d, want %d", i+2, got, want)
		}
	}
	s = Wyrand(g.Seed)
	for i, want := range g.Floats {
		if got := s.Float64(); math.Float64bits(got) != hex(want.Bits) {
			t.Errorf("float %d: %v, want %s", i, got, want.Bits)
		}
	}
}

// Draws are redrawn where the range does not divide 2^64.
func TestBelowIsFair(t *testing.T) {
	s := Wyrand(1)
	n := uint64(3) << 62 // a quarter of all draws is redrawn
	counts := [3]int{}
	for range 30000 {
		x := s.Below(n)
		if x >= n {
			t.Fatalf("%d is not below %d", x, n)
		}
		counts[x>>62]++
	}
	for _, c := range counts {
		if c < 9500 || c > 10500 {
			t.Errorf("thirds: %v", counts)
		}
	}
}

package rng

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"testing"
)

// Vectors of engine notes §9.
func TestSeed42(t *testing.T) {
	s := New(42)
	var key []byte
	for _, w := range s.key {
		key = binary.LittleEndian.AppendUint32(key, w)
	}
	if got, want := hex.EncodeToString(key), "a48fa17b58323d0aeab8a1cc690114b82b8cc87518b4f7548d446ea1e4df20f2"; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
	for i, want := range []uint64{9713269763989775522, 10011513049433592189, 11740708795755607249, 7487565853151867058} {
		if got := s.Uint64(); got != want {
			t.Errorf("draw %d: %d, want %d", i, got, want)
		}
	}
}

// The cipher against the published vector of ChaCha with 12 rounds: a key and
// nonce of zeros (draft-strombergson-chacha-test-vectors-01, TC1, 256 bits).
func TestZeroKey(t *testing.T) {
	s := Stream{used: blockWords}
	var got []byte
	for range 8 {
		got = binary.LittleEndian.AppendUint64(got, s.Uint64())
	}
	want := "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f" +
		"0564f879d27ae3c02ce82834acfa8c793a629f2ca0de6919610be82f411326be"
	if hex.EncodeToString(got) != want {
		t.Errorf("first block %x", got)
	}
}

func chances(rates ...float64) []Chance {
	var list []Chance
	for _, p := range rates {
		list = append(list, NewChance(p))
	}
	return list
}

// Vectors of engine notes §9.
func TestAccept(t *testing.T) {
	cases := []struct {
		seed  uint64
		rates []float64
		want  []int
	}{
		{42, []float64{.8, .5}, []int{2, 3, 3, 2, 3, 1, 3, 2, 3, 3, 2, 2, 3, 2, 3, 3, 1, 1, 1, 3}},
		{45, []float64{.8, .5}, []int{3, 1, 2, 3, 3, 2, 2, 3, 3, 2}},
		{42, []float64{.85, .3, 0}, []int{2, 2, 2, 2, 3, 2, 2, 3, 2, 2, 3, 2, 2}},
	}
	for _, c := range cases {
		s := New(c.seed)
		var got []int
		for range c.want {
			got = append(got, s.Accept(chances(c.rates...)))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("seed %d, rates %v: %v, want %v", c.seed, c.rates, got, c.want)
		}
	}
}

// A certain outcome draws nothing, an impossible one does, and what follows a
// refused token is not drawn for.
func TestWhatDraws(t *testing.T) {
	cases := []struct {
		rates []float64
		n     int
		draws int
	}{
		{nil, 1, 0},
		{[]float64{1, 1}, 3, 0},
		{[]float64{0, 1}, 1, 1},
		{[]float64{1, 0, 0}, 2, 1},
	}
	for _, c := range cases {
		s, untouched := New(7), New(7)
		if n := s.Accept(chances(c.rates...)); n != c.n {
			t.Errorf("%v: %d tokens, want %d", c.rates, n, c.n)
		}
		for range c.draws {
			untouched.Uint64()
		}
		if s.Uint64() != untouched.Uint64() {
			t.Errorf("%v: did not draw %d times", c.rates, c.draws)
		}
	}
}

// The counter of blocks goes on into its high word.
func TestCounterCarries(t *testing.T) {
	low, high := New(3), New(3)
	low.counter, high.counter = 1<<32-1, 1<<32
	for range 8 {
		low.Uint64()
	}
	for i := range 8 {
		if a, b := low.Uint64(), high.Uint64(); a != b {
			t.Fatalf("draw %d of block 2^32: %d, want %d", i, a, b)
		}
	}
}

func TestStreamIsAValue(t *testing.T) {
	a := New(9)
	a.Uint64()
	b := a
	if a.Uint64() != b.Uint64() {
		t.Error("a copy goes another way")
	}
	c := chances(.85, .3, 0)
	if n := testing.AllocsPerRun(100, func() { s := New(1); s.Accept(c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

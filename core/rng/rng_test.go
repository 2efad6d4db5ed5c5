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

// Words one by one, as the reference's outputs are drawn (replay notes §3.1).
func TestWords(t *testing.T) {
	s := New(0xD37A0A7E5EED)
	for i, want := range []uint32{952584220, 694593853, 2967053780, 2932165014, 2184908278, 3971079078, 3124715654} {
		if got := s.Uint32(); got != want {
			t.Errorf("draw %d: %d, want %d", i, got, want)
		}
	}
}

// A pair of words may span two blocks, and any place can be sought.
func TestPairsAndSeek(t *testing.T) {
	words := make([]uint32, 100)
	s := New(7)
	for i := range words {
		words[i] = s.Uint32()
	}
	for first := range len(words) - 40 {
		s.Seek(uint64(first))
		for i := first; i+1 < len(words); i += 2 {
			if got, want := s.Uint64(), uint64(words[i+1])<<32|uint64(words[i]); got != want {
				t.Fatalf("from word %d, at word %d: %x, want %x", first, i, got, want)
			}
		}
	}
}

// The groups that the reference draws from seed 42 (replay notes §4).
func TestBelow(t *testing.T) {
	s := New(42)
	for i, want := range []uint32{0, 1, 0, 1, 2, 1, 2, 1} {
		if got := s.Below(3); got != want {
			t.Errorf("draw %d: %d, want %d", i, got, want)
		}
	}
	// The second word matters where the first product's low half is near 2^32:
	// both ways, against the same sum done exactly.
	const n = 0xC0000001
	s, carried := New(5), 0
	for range 10000 {
		x := s
		first, second := uint64(x.Uint32())*n, uint64(x.Uint32())*n>>32
		want := first >> 32
		if first&0xFFFFFFFF > 1<<32-n {
			if first&0xFFFFFFFF+second > 0xFFFFFFFF {
				want++
				carried++
			}
		}
		if got := s.Below(n); uint64(got) != want || want >= n {
			t.Fatalf("%d, want %d below %d", got, want, n)
		}
	}
	if carried == 0 {
		t.Error("no draw needed the second word")
	}
}

func TestFloat64(t *testing.T) {
	s := New(42)
	for range 1000 {
		if x := s.Float64(); x < 0 || x >= 1 {
			t.Fatal(x)
		}
	}
	if s := New(42); s.Float64() != float64(uint64(9713269763989775522)>>11)*0x1p-53 {
		t.Error("not the top bits of the first draw")
	}
}

func BenchmarkAccept(b *testing.B) {
	bursts := NewBursts(42, []float64{.8, .6, .4})
	for b.Loop() {
		bursts.Next()
	}
}

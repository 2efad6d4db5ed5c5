package seq

import (
	"encoding/binary"
	"slices"
	"testing"
)

func uuid(n uint64) (u [16]byte) {
	binary.BigEndian.PutUint64(u[8:], n)
	return u
}

func sequence(f Format, tokens ...uint32) *Sequence {
	var s Sequence
	s.Reset(f, len(tokens))
	s.AppendAll(tokens)
	return &s
}

func span(start, n uint32) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = start + uint32(i)
	}
	return ids
}

// Vectors of engine notes §1.2.
func TestBlockIdentities(t *testing.T) {
	cases := []struct {
		name      string
		blockSize int
		tokens    []uint32
		want      []Identity
	}{
		{"0 to 11 by 4", 4, span(0, 12), []Identity{
			{9143094415614847814, 9143094415614847814},
			{9510318385840434533, 12124091508212882195},
			{16998148715716822651, 1088361764653601668},
		}},
		{"0 to 19 by 4", 4, span(0, 20), []Identity{
			{9143094415614847814, 9143094415614847814},
			{9510318385840434533, 12124091508212882195},
			{16998148715716822651, 1088361764653601668},
			{16790386768269814709, 16024980976528976948},
			{5857744578197119759, 17686272931471592693},
		}},
		{"100 to 107 by 4", 4, span(100, 8), []Identity{
			{6320977984009303047, 6320977984009303047},
			{3184517425968952090, 16988655349664461655},
		}},
		{"the open block has none", 4, span(100, 7), []Identity{{6320977984009303047, 6320977984009303047}}},
		{"by 1", 1, span(0, 2), []Identity{
			{16451421758532862321, 16451421758532862321},
			{5478772005252122579, 14426539925402682893},
		}},
	}
	for _, c := range cases {
		for _, keep := range []bool{false, true} {
			s := sequence(Format{BlockSize: c.blockSize, Identify: true, KeepTokens: keep}, c.tokens...)
			if !slices.Equal(s.Blocks(), c.want) {
				t.Errorf("%s, keep %v: got %v, want %v", c.name, keep, s.Blocks(), c.want)
			}
			if s.Len() != len(c.tokens) {
				t.Errorf("%s: length %d, want %d", c.name, s.Len(), len(c.tokens))
			}
		}
	}
}

// Vectors of engine notes §1.3.
func TestOutputTokens(t *testing.T) {
	cases := [][]uint32{
		1: {2515880452, 3600266899, 2716793611, 2249174135, 4189622374, 2652644166, 489139439, 862877534, 2427837198},
		2: {1927195132, 4023020740, 3141456749, 1393672153, 1052898130, 1056272638},
		3: {1091293017, 2556125220},
		4: {3264010579, 1400075788},
	}
	for id, want := range cases {
		for k, token := range want {
			if got := OutputToken(uuid(uint64(id)), uint64(k)); got != token {
				t.Errorf("uuid %d token %d: got %d, want %d", id, k, got, token)
			}
		}
	}
}

// A prompt tail and generated tokens share a block (engine notes §15, E1).
func TestGeneratedTokensExtendTheChain(t *testing.T) {
	s := sequence(Format{BlockSize: 4, Identify: true, KeepTokens: true}, span(0, 10)...)
	s.Append(OutputToken(uuid(1), 0))
	s.Append(OutputToken(uuid(1), 1))
	want := Identity{Hash: 6272816507164950367, Local: 5447465487583912664}
	if got := s.Blocks(); len(got) != 3 || got[2] != want {
		t.Fatalf("got %v, want the third to be %v", got, want)
	}
	tokens := s.AppendBlockTokens([]uint32{7}, 2)
	if want := []uint32{7, 8, 9, 2515880452, 3600266899}; !slices.Equal(tokens, want) {
		t.Fatalf("tokens of block 2: got %v, want %v", tokens, want)
	}
}

func TestWithoutIdentitiesOnlyCounts(t *testing.T) {
	s := sequence(Format{BlockSize: 4}, span(0, 9)...)
	s.Append(1)
	if s.Len() != 10 || len(s.Blocks()) != 0 || cap(s.ids) != 0 {
		t.Fatalf("length %d, %d identities, %d bytes kept", s.Len(), len(s.Blocks()), cap(s.ids))
	}
}

func TestBlockLongerThanTheBuffer(t *testing.T) {
	var s Sequence
	s.Reset(Format{BlockSize: 1000, Identify: true}, 10)
	s.AppendAll(span(0, 2500))
	again := sequence(Format{BlockSize: 1000, Identify: true, KeepTokens: true}, span(0, 2500)...)
	if len(s.Blocks()) != 2 || !slices.Equal(s.Blocks(), again.Blocks()) {
		t.Fatalf("got %v, want %v", s.Blocks(), again.Blocks())
	}
}

func TestReuseAllocatesNothing(t *testing.T) {
	prompt := span(0, 1000)
	id := uuid(7)
	var s Sequence
	for _, f := range []Format{{BlockSize: 16}, {BlockSize: 16, Identify: true}, {BlockSize: 16, Identify: true, KeepTokens: true}} {
		run := func() {
			s.Reset(f, 1200)
			s.AppendAll(prompt)
			for k := range uint64(200) {
				s.Append(OutputToken(id, k))
			}
		}
		run()
		if n := testing.AllocsPerRun(20, run); n != 0 {
			t.Errorf("%+v: %v allocations per run", f, n)
		}
	}
}

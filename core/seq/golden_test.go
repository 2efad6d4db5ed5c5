package seq

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// hexes are 64-bit numbers written in hexadecimal.
type hexes []uint64

func (h *hexes) UnmarshalJSON(text []byte) error {
	var words []string
	if err := json.Unmarshal(text, &words); err != nil {
		return err
	}
	*h = nil
	for _, w := range words {
		n, err := strconv.ParseUint(w, 16, 64)
		if err != nil {
			return err
		}
		*h = append(*h, n)
	}
	return nil
}

type goldenPrompt struct {
	Name      string   `json:"name"`
	BlockSize int      `json:"block_size"`
	Eagle     bool     `json:"is_eagle"`
	Lora      string   `json:"lora_name"`
	Namespace string   `json:"cache_namespace"`
	Tokens    []uint32 `json:"tokens"`
	Media     []hexes  `json:"block_mm_hashes"`
	Locals    hexes    `json:"local_hashes"`
	Sequence  hexes    `json:"sequence_hashes"`
}

func (c goldenPrompt) check(t *testing.T) {
	t.Helper()
	h := Plain(c.BlockSize)
	h.BlockSeed, h.Eagle = Salt(c.Lora, c.Namespace), c.Eagle
	media := make([][]uint64, len(c.Media))
	for i, m := range c.Media {
		media[i] = m
	}
	locals := h.AppendLocals(nil, c.Tokens, media)
	if !slices.Equal(locals, c.Locals) || len(locals) != h.Blocks(len(c.Tokens)) {
		t.Errorf("%s, %+v: local hashes %x, want %x", c.Name, h, locals, c.Locals)
	}
	if chain := h.AppendChain(nil, locals); !slices.Equal(chain, c.Sequence) {
		t.Errorf("%s, %+v: sequence hashes %x, want %x", c.Name, h, chain, c.Sequence)
	}
}

// The reference's own hashes.
func TestGoldenHashes(t *testing.T) {
	text, err := os.ReadFile("../../testdata/router/hashes.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Seed uint64 `json:"seed"`
		Salt []struct {
			Lora      string `json:"lora_name"`
			Namespace string `json:"cache_namespace"`
			Seed      string `json:"seed"`
		} `json:"salt"`
		Next []struct {
			Parent string `json:"parent"`
			Block  string `json:"block"`
			Next   string `json:"next"`
		} `json:"next_sequence_hash"`
		Cases      []goldenPrompt `json:"cases"`
		Multimodal goldenPrompt   `json:"multimodal"`
		Media      []struct {
			ID   string  `json:"id"`
			Hash *string `json:"hash"`
			Pad  *uint32 `json:"pad"`
		} `json:"mm_identifier"`
		Split struct {
			BlockSize int           `json:"block_size"`
			Total     int           `json:"total_tokens"`
			Objects   []goldenMedia `json:"mm_objects"`
			Blocks    []struct {
				Objects []goldenMedia `json:"mm_objects"`
			} `json:"blocks"`
		} `json:"mm_request_to_block"`
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	if golden.Seed != Seed || len(golden.Cases) != 66 || len(golden.Salt) != 6 || len(golden.Next) != 3 || len(golden.Media) != 5 {
		t.Fatalf("seed %d, %d cases", golden.Seed, len(golden.Cases))
	}
	for _, c := range golden.Salt {
		if got := strconv.FormatUint(Salt(c.Lora, c.Namespace), 16); got != trim(c.Seed) {
			t.Errorf("salt of %q, %q: %s, want %s", c.Lora, c.Namespace, got, c.Seed)
		}
	}
	for _, c := range golden.Next {
		got := Plain(1).Next(parse(t, c.Parent), parse(t, c.Block))
		if got != parse(t, c.Next) || got != Chain(parse(t, c.Parent), parse(t, c.Block)) {
			t.Errorf("after %s, %s: %x, want %s", c.Parent, c.Block, got, c.Next)
		}
	}
	for _, c := range append(golden.Cases, golden.Multimodal) {
		c.check(t)
	}
	for _, c := range golden.Media {
		hash, ok := MediaHash(c.ID)
		if ok != (c.Hash != nil) || ok && (hash != parse(t, *c.Hash) || PadToken(hash) != *c.Pad) {
			t.Errorf("identifier %q: %x, %v, pad %d", c.ID, hash, ok, PadToken(hash))
		}
	}
	var want [][]Media
	for _, b := range golden.Split.Blocks {
		want = append(want, medias(b.Objects))
	}
	got := SplitMedia(medias(golden.Split.Objects), golden.Split.BlockSize, golden.Split.Total)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("objects of blocks: %v, want %v", got, want)
	}
}

type goldenMedia struct {
	Hash    uint64   `json:"mm_hash"`
	Offsets [][2]int `json:"offsets"`
}

func medias(list []goldenMedia) (objects []Media) {
	for _, m := range list {
		objects = append(objects, Media(m))
	}
	return objects
}

func trim(hex string) string {
	for len(hex) > 1 && hex[0] == '0' {
		hex = hex[1:]
	}
	return hex
}

func parse(t *testing.T, hex string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Engines and routers name blocks alike, whatever the size of the block.
func TestHashingAgreesWithSequence(t *testing.T) {
	for _, size := range []int{1, 3, 16, 512, 1000, 1500} {
		tokens := span(7, 4000)
		s := sequence(Format{BlockSize: size, Identify: true}, tokens...)
		h := Plain(size)
		locals := h.AppendLocals(nil, tokens, nil)
		chain := h.AppendChain(nil, locals)
		for i, id := range s.Blocks() {
			if locals[i] != id.Local || chain[i] != id.Hash {
				t.Fatalf("size %d, block %d: %x %x, want %v", size, i, locals[i], chain[i], id)
			}
		}
		if len(chain) != len(s.Blocks()) {
			t.Fatalf("size %d: %d blocks, want %d", size, len(chain), len(s.Blocks()))
		}
	}
}

func TestHashingAllocatesNothing(t *testing.T) {
	tokens, locals, chain := span(0, 4096), make([]uint64, 0, 256), make([]uint64, 0, 256)
	h := Plain(16)
	if n := testing.AllocsPerRun(20, func() {
		locals = h.AppendLocals(locals[:0], tokens, nil)
		chain = h.AppendChain(chain[:0], locals)
	}); n != 0 {
		t.Errorf("%v allocations per prompt", n)
	}
}

func BenchmarkHashing(b *testing.B) {
	for _, size := range []int{16, 64, 512} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			tokens := span(0, 1<<20)
			h := Plain(size)
			var locals, chain []uint64
			for b.Loop() {
				locals = h.AppendLocals(locals[:0], tokens, nil)
				chain = h.AppendChain(chain[:0], locals)
			}
			b.ReportMetric(float64(len(tokens))*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gtok/s")
		})
	}
}

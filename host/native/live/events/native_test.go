package events

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/routerwire"
	"github.com/dryserve/dryserve/internal/stand"
)

// batch is a message as it was captured, in words.
type batch struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`
	At       float64
	Events   []struct {
		Type      string   `msgpack:"type"`
		Blocks    []uint64 `msgpack:"block_hashes"`
		Parent    *uint64  `msgpack:"parent_block_hash"`
		Tokens    []uint32 `msgpack:"token_ids"`
		BlockSize int      `msgpack:"block_size"`
	}
	Rank int
}

// engineSaid is what an engine says that is told so.
func (b *batch) engineSaid() (raw []engine.KVEvent, blocks []engine.KVBlock, tokens []uint32) {
	for _, e := range b.Events {
		k := engine.KVEvent{Kind: engine.Removed, First: len(blocks), Count: len(e.Blocks)}
		if e.Type == "BlockStored" {
			k.Kind = engine.Stored
		}
		if e.Parent != nil {
			k.HasParent, k.Parent = true, *e.Parent
		}
		for i, h := range e.Blocks {
			blocks = append(blocks, engine.KVBlock{Hash: h, Tokens: len(tokens) + i*e.BlockSize})
		}
		tokens = append(tokens, e.Tokens...)
		raw = append(raw, k)
	}
	return raw, blocks, tokens
}

// The reference's own messages of a cache in vLLM's form, byte for byte, when they
// are told and when they are asked for.
func TestGoldenNative(t *testing.T) {
	text, err := os.ReadFile("testdata/native.json")
	if err != nil {
		t.Fatal(err)
	}
	var want [][2]string
	if err := json.Unmarshal(text, &want); err != nil || len(want) != 18 {
		t.Fatalf("%v, %d messages", err, len(want))
	}
	n, err := ListenNative("127.0.0.1", stand.Port(t), stand.Port(t), 1, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, m := range want {
		payload, err := hex.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		var b batch
		if err := routerwire.Unmarshal(payload, &b); err != nil || b.Rank != 1 {
			t.Fatalf("%v: %+v", err, b)
		}
		seconds, part := math.Modf(b.At)
		n.now = func() time.Time { return time.Unix(int64(seconds), int64(math.Round(part*1e9))) }
		raw, blocks, tokens := b.engineSaid()
		if err := n.Tell(raw, blocks, tokens); err != nil {
			t.Fatal(err)
		}
	}
	var got [][2]string
	ask := func(parts ...[]byte) (list [][]string) {
		n.answer(parts, func(parts ...[]byte) bool {
			var texts []string
			for _, p := range parts {
				texts = append(texts, hex.EncodeToString(p))
			}
			list = append(list, texts)
			return true
		})
		return list
	}
	all := ask(nil, make([]byte, 8))
	for _, m := range all[:len(all)-1] {
		if len(m) != 4 || m[0] != "" || m[1] != "" {
			t.Errorf("%q", m)
		}
		got = append(got, [2]string{m[2], m[3]})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-reference +ours):\n%s", d)
	}
	end := []string{"", "", "ffffffffffffffff", ""}
	if last := all[len(all)-1]; !slices.Equal(last, end) {
		t.Errorf("the end is %q", last)
	}
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	for start, want := range map[uint64]int{17: 2, 18: 1, math.MaxUint64: 1, 0: 19} {
		if list := ask(nil, number(start)); len(list) != want || !slices.Equal(list[want-1], end) {
			t.Errorf("from %d: %d messages", start, len(list))
		}
	}
	for _, parts := range [][][]byte{nil, {number(0)}, {nil, number(0)[:7]}, {nil, append(number(0), 0)}} {
		if list := ask(parts...); list != nil {
			t.Errorf("%q is answered", parts)
		}
	}
}

// The oldest messages are forgotten, and who asks for them gets what there is; what
// says nothing has no number; a client that leaves is not spoken to.
func TestNativeForgets(t *testing.T) {
	n, err := ListenNative("127.0.0.1", stand.Port(t), stand.Port(t), 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	gone := []engine.KVEvent{{Kind: engine.Removed, Count: 1}}
	host := []engine.KVEvent{{Kind: engine.Removed, Host: true, Count: 1}}
	for i := range mostKept + 7 {
		for _, raw := range [][]engine.KVEvent{gone, host, nil} {
			if err := n.Tell(raw, []engine.KVBlock{{Hash: uint64(i)}}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	count, first := 0, uint64(0)
	n.answer([][]byte{nil, make([]byte, 8)}, func(parts ...[]byte) bool {
		if count == 0 {
			first = binary.BigEndian.Uint64(parts[2])
		}
		count++
		return true
	})
	if count != mostKept+1 || first != 7 {
		t.Errorf("%d messages from %d", count, first)
	}
	count = 0
	n.answer([][]byte{nil, make([]byte, 8)}, func(...[]byte) bool { count++; return count < 5 })
	if count != 5 {
		t.Errorf("%d messages to who has gone after 5", count)
	}
	if _, err := ListenNative("127.0.0.1", n.pub.Port(), 0, 0, 4); err == nil {
		t.Error("a port is opened twice")
	}
	if _, err := ListenNative("127.0.0.1", stand.Port(t), n.router.Port(), 0, 4); err == nil {
		t.Error("a port is opened twice")
	}
}

package kvindex

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// dice draws decisions from bytes; at their end all are 0.
type dice struct{ data []byte }

func (d *dice) roll(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

// style is how a stream names its blocks.
type style struct{ locals, naming int }

// path draws a prompt from its first block on.
func (s style) path(d *dice) []naiveBlock {
	blocks := make([]naiveBlock, 1+d.roll(7))
	chain := uint64(1)
	for i := range blocks {
		l := uint64(d.roll(s.locals))
		chain = chain*31 + l
		ext := chain
		switch s.naming {
		case 1: // any name for any block
			ext = uint64(d.roll(9))
		case 2: // a wrong one now and then
			if d.roll(6) == 0 {
				ext = uint64(d.roll(9))
			}
		case 3: // blocks named by their own tokens alone
			ext = l
		case 4: // collisions
			ext = chain % 7
		case 5: // two names for each
			ext += uint64(d.roll(2)) * 1_000_000
		}
		blocks[i] = naiveBlock{l, ext}
	}
	return blocks
}

// play runs the index and the model side by side on random events and compares
// all they say.
func play(t *testing.T, data []byte) {
	d := &dice{data}
	x := newSubject()
	slots := 1 + d.roll(5)
	if d.roll(8) == 0 {
		slots = 130
	}
	x.index.Grow(slots)
	s := style{2 + d.roll(4), d.roll(6)}
	for len(d.data) > 0 {
		w := Slot(d.roll(slots))
		blocks := s.path(d)
		switch k := d.roll(20); {
		case k < 11:
			from := 0
			if d.roll(3) > 0 {
				from = d.roll(len(blocks))
			}
			parent := uint64(0)
			if from > 0 {
				parent = blocks[from-1].ext
			}
			if got, want := x.store(w, from > 0, parent, blocks[from:]); got != want {
				t.Fatalf("store %v behind %d: %s, want %s", blocks[from:], parent, codeNames[got], codeNames[want])
			}
		case k < 18:
			exts := make([]uint64, 0, len(blocks)+1)
			for _, b := range blocks {
				if d.roll(2) == 0 {
					exts = append(exts, b.ext)
				}
			}
			if d.roll(2) == 0 {
				slices.Reverse(exts)
			}
			if len(exts) > 0 && d.roll(4) == 0 {
				exts = append(exts, exts[0])
			}
			if got, want := x.index.Remove(w, exts), x.model.remove(w, exts); got != want {
				t.Fatalf("remove %v: %s, want %s", exts, codeNames[got], codeNames[want])
			}
		case k == 18:
			x.index.Clear(w)
			x.model.clear(w)
		}
		x.index.Check()
		if x.index.Size() != x.model.size() || x.index.SlotSize(w) != len(x.model.known(w)) {
			t.Fatalf("size %d, want %d", x.index.Size(), x.model.size())
		}
		var locals []uint64
		for _, b := range s.path(d) {
			locals = append(locals, b.local)
		}
		if got, want := x.match(locals, d.roll(3) == 0); !slices.Equal(got, want) {
			t.Fatalf("match %v: %v, want %v", locals, got, want)
		}
	}
	for w := range slots {
		x.index.Clear(Slot(w))
	}
	x.index.Check()
	empty(t, x.index)
}

// empty checks that nothing is left of anything in an index.
func empty(t *testing.T, x *Index) {
	t.Helper()
	free := 0
	for order, b := range x.space.heads {
		for ; b >= 0; b = int32(uint32(x.local[b])) {
			free += 1 << order
		}
	}
	if x.Size() != 0 || x.Blocks() != 0 || x.Nodes() != 0 || x.odd.found.used != 0 || free != len(x.owner) {
		t.Fatalf("left: size %d, %d blocks, %d nodes, %d entries, %d slots in use", x.Size(), x.Blocks(), x.Nodes(), x.odd.found.used, len(x.owner)-free)
	}
	nodes := 0
	for n := x.freeNode; n != 0; n = x.nodes[n].parent {
		nodes++
	}
	runs := 0
	for r := x.freeRun; r != 0; r = x.runs[r].next {
		runs++
	}
	if nodes != len(x.nodes)-1 || runs != len(x.runs)-1 {
		t.Fatalf("left: %d nodes, %d runs", len(x.nodes)-1-nodes, len(x.runs)-1-runs)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("a radix tree of prefixes, split and pruned"))
	f.Fuzz(play)
}

func TestRandomStreams(t *testing.T) {
	rounds := 1500
	if testing.Short() {
		rounds = 300
	}
	r := rand.New(rand.NewPCG(7, 11))
	for range rounds {
		data := make([]byte, 200+r.IntN(2000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		play(t, data)
	}
}

package kvindex

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// golden reads a file of the reference's answers.
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

type rankKey struct{ worker, rank uint64 }

// slotMap numbers the ranks of a golden case as they are first seen.
type slotMap struct {
	slots map[rankKey]Slot
	keys  []rankKey
}

func (s *slotMap) of(worker, rank uint64) Slot {
	k := rankKey{worker, rank}
	if w, ok := s.slots[k]; ok {
		return w
	}
	w := Slot(len(s.keys))
	s.slots[k] = w
	s.keys = append(s.keys, k)
	return w
}

type goldenStep struct {
	Op     string
	Worker uint64
	Rank   uint64 `json:"dp_rank"`
	Result string
	Size   int

	Parent *uint64
	Blocks []struct{ Local, Ext uint64 }
	Hashes []uint64

	Locals  []uint64
	Early   bool        `json:"early_exit"`
	Scores  [][3]uint64 // worker, rank, blocks
	Lasts   [][3]uint64 `json:"last_hashes"`
	Workers []uint64
}

var codeNames = []string{Applied: "ok", ParentNotFound: "ParentBlockNotFound", InvalidSequence: "InvalidBlockSequence", BlockNotFound: "BlockNotFound"}

// subject is what a golden case is replayed on.
type subject struct {
	slotMap
	index *Index
	model *naive
}

func newSubject() *subject {
	return &subject{slotMap: slotMap{slots: map[rankKey]Slot{}}, index: New(0), model: newNaive()}
}

func (x *subject) store(w Slot, hasParent bool, parent uint64, blocks []naiveBlock) (Code, Code) {
	x.index.Grow(int(w) + 1)
	var locals, exts []uint64
	for _, b := range blocks {
		locals, exts = append(locals, b.local), append(exts, b.ext)
	}
	return x.index.Store(w, hasParent, parent, locals, exts), x.model.store(w, hasParent, parent, blocks)
}

func (x *subject) match(locals []uint64, early bool) (got, want []naiveMatch) {
	m := Matches{Lasts: true}
	x.index.Match(locals, early, &m)
	for i, w := range m.Slots {
		got = append(got, naiveMatch{w, int(m.Depths[i]), m.Last[i]})
	}
	slices.SortFunc(got, func(a, b naiveMatch) int { return cmp.Compare(a.slot, b.slot) })
	return got, x.model.match(locals, early)
}

// step replays a step on the index and on the model.
func (x *subject) step(t *testing.T, s goldenStep) {
	t.Helper()
	codes := func(got, naive Code) {
		t.Helper()
		if codeNames[got] != s.Result || naive != got {
			t.Fatalf("%+v: %s, the model says %s", s, codeNames[got], codeNames[naive])
		}
	}
	switch s.Op {
	case "store":
		blocks := make([]naiveBlock, len(s.Blocks))
		for i, b := range s.Blocks {
			blocks[i] = naiveBlock{b.Local, b.Ext}
		}
		parent := uint64(0)
		if s.Parent != nil {
			parent = *s.Parent
		}
		codes(x.store(x.of(s.Worker, s.Rank), s.Parent != nil, parent, blocks))
	case "remove":
		w := x.of(s.Worker, s.Rank)
		x.index.Grow(int(w) + 1)
		codes(x.index.Remove(w, s.Hashes), x.model.remove(w, s.Hashes))
	case "clear", "remove_worker_dp_rank", "clear_all_blocks", "remove_worker":
		for w, k := range x.keys {
			if k.worker == s.Worker && (k.rank == s.Rank || s.Op == "clear_all_blocks" || s.Op == "remove_worker") {
				x.index.Clear(Slot(w))
				x.model.clear(Slot(w))
			}
		}
	case "query":
		got, want := x.match(s.Locals, s.Early)
		if !slices.Equal(got, want) {
			t.Fatalf("%v: %v, the model says %v", s.Locals, got, want)
		}
		var scores, lasts [][3]uint64
		for _, m := range got {
			k := x.keys[m.slot]
			scores = append(scores, [3]uint64{k.worker, k.rank, uint64(m.depth)})
			lasts = append(lasts, [3]uint64{k.worker, k.rank, m.last})
		}
		sameRows(t, scores, s.Scores)
		sameRows(t, lasts, s.Lasts)
		return
	default:
		t.Fatalf("unknown step %q", s.Op)
	}
	if x.index.Size() != s.Size || x.model.size() != s.Size {
		t.Fatalf("%+v: size %d, the model says %d", s, x.index.Size(), x.model.size())
	}
	x.index.Check()
}

func sameRows(t *testing.T, got, want [][3]uint64) {
	t.Helper()
	order := func(a, b [3]uint64) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

// The reference's index, step by step.
func TestGoldenIndex(t *testing.T) {
	var file struct {
		Curated []struct {
			Name  string
			Steps []goldenStep
		}
		Random []struct {
			Case  int
			Steps []goldenStep
		}
	}
	golden(t, "indexer.json", &file)
	steps := 0
	replay := func(list []goldenStep) {
		x := newSubject()
		for _, s := range list {
			x.step(t, s)
			steps++
		}
	}
	for _, c := range file.Curated {
		replay(c.Steps)
	}
	for _, c := range file.Random {
		replay(c.Steps)
	}
	if steps != 3637 {
		t.Errorf("%d steps, want 3637", steps)
	}
}

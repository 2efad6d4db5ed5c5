package active

import (
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive is the tracker of router notes §5 as it stands there: hashes counted
// one by one, big numbers, lists.
type naive struct {
	slots []naiveSlot
}

type naiveSlot struct {
	counts   map[uint64]int
	alone    int
	requests int
	prompts  []naivePrompt // still to be computed
	anchorNs uint64
}

type naivePrompt struct {
	id   Booking
	load Load
}

type naiveBooking struct {
	w        Slot
	sequence []uint64
	alone    int
}

func (n *naive) add(id Booking, b naiveBooking, load Load, now uint64) {
	s := &n.slots[b.w]
	for _, h := range b.sequence {
		s.counts[h]++
	}
	s.alone += b.alone
	s.requests++
	if load.Tokens > 0 {
		if len(s.prompts) == 0 {
			s.anchorNs = now
		}
		s.prompts = append(s.prompts, naivePrompt{id, load})
	}
}

func (n *naive) done(id Booking, w Slot, now uint64) {
	s := &n.slots[w]
	i := slices.IndexFunc(s.prompts, func(p naivePrompt) bool { return p.id == id })
	if i < 0 {
		return
	}
	if ns := s.prompts[i].load.Ns; i == 0 {
		s.anchorNs = now
	} else if ns != Unknown {
		s.anchorNs = min(s.anchorNs+ns, now)
	}
	s.prompts = slices.Delete(s.prompts, i, i+1)
}

func (n *naive) end(id Booking, b naiveBooking, now uint64) {
	n.done(id, b.w, now)
	s := &n.slots[b.w]
	for _, h := range b.sequence {
		if s.counts[h]--; s.counts[h] == 0 {
			delete(s.counts, h)
		}
	}
	s.alone -= b.alone
	s.requests--
}

func (s *naiveSlot) tokens(now uint64) uint64 {
	if len(s.prompts) == 0 {
		return 0
	}
	sum, predicted := uint64(0), true
	for _, p := range s.prompts {
		sum += p.load.Tokens
		predicted = predicted && p.load.Ns != Unknown
	}
	front := s.prompts[0].load
	elapsed := uint64(0)
	if now > s.anchorNs {
		elapsed = now - s.anchorNs
	}
	if !predicted {
		left := front.Tokens
		if front.Ns == 0 {
			left = 0
		} else if front.Ns != Unknown {
			part := 1 - seconds(elapsed)/seconds(front.Ns)
			left = uint64(math.Ceil(float64(front.Tokens) * math.Min(math.Max(part, 0), 1)))
		}
		return sum - front.Tokens + left
	}
	if front.Ns == 0 {
		return 0
	}
	big1 := new(big.Int).Mul(new(big.Int).SetUint64(front.Tokens), new(big.Int).SetUint64(elapsed))
	big1.Div(big1, new(big.Int).SetUint64(front.Ns))
	if !big1.IsUint64() || big1.Uint64() >= sum {
		return 0
	}
	return sum - big1.Uint64()
}

func (s *naiveSlot) shared(sequence []uint64) int {
	for i, h := range sequence {
		if s.counts[h] == 0 {
			return i
		}
	}
	return len(sequence)
}

type dice struct{ data []byte }

func (d *dice) roll(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

// prompt draws hashes that name what stands before them.
func prompt(d *dice, width int) []uint64 {
	sequence := make([]uint64, d.roll(8))
	hash := uint64(7)
	for i := range sequence {
		hash = hash*1_000_003 + uint64(d.roll(width)) + 1
		sequence[i] = hash
	}
	return sequence
}

// play runs a tracker and the model side by side.
func play(t *testing.T, data []byte) {
	d := &dice{data}
	slots := 1 + d.roll(4)
	if d.roll(8) == 0 {
		slots = 70
	}
	width := 1 + d.roll(3)
	x := New(0)
	x.Grow(slots)
	n := &naive{make([]naiveSlot, slots)}
	for i := range n.slots {
		n.slots[i].counts = map[uint64]int{}
	}
	live := map[Booking]naiveBooking{}
	now := uint64(0)
	for len(d.data) > 0 {
		now += uint64(d.roll(7)) * 1e6
		switch k := d.roll(10); {
		case k < 5 || len(live) == 0:
			b := naiveBooking{w: Slot(d.roll(slots)), sequence: prompt(d, width), alone: d.roll(3)}
			load := Load{Tokens: uint64(d.roll(3)) * uint64(d.roll(200)), Ns: uint64(d.roll(20)) * 1e6}
			switch d.roll(6) {
			case 0:
				load.Ns = Unknown
			case 1:
				load.Tokens <<= 50
			}
			id := x.Add(b.w, b.sequence, b.alone, load, now)
			if _, ok := live[id]; ok {
				t.Fatalf("booking %d is given out twice", id)
			}
			live[id] = b
			n.add(id, b, load, now)
		default:
			ids := slices.Sorted(maps.Keys(live))
			id := ids[d.roll(len(ids))]
			b := live[id]
			if x.Slot(id) != b.w {
				t.Fatalf("booking %d is on slot %d, want %d", id, x.Slot(id), b.w)
			}
			if k < 8 {
				x.PrefillDone(id, now)
				n.done(id, b.w, now)
			} else {
				x.Free(id, now)
				n.end(id, b, now)
				delete(live, id)
			}
		}
		later := now + uint64(d.roll(9))*1e6
		var shared Shared
		query := prompt(d, width)
		x.Shared(query, &shared)
		for w := range n.slots {
			s := &n.slots[w]
			got := [4]int{x.Blocks(Slot(w)), x.Requests(Slot(w)), 0, int(x.Tokens(Slot(w), later))}
			if i := slices.Index(shared.Slots, Slot(w)); i >= 0 {
				got[2] = int(shared.Blocks[i])
			}
			want := [4]int{len(s.counts) + s.alone, s.requests, s.shared(query), int(s.tokens(later))}
			if got != want {
				t.Fatalf("slot %d: blocks, requests, shared, tokens %v, want %v", w, got, want)
			}
		}
	}
	for id := range live {
		x.Free(id, now)
	}
	empty(t, x)
}

// empty checks that nothing is left of any request.
func empty(t *testing.T, x *Tracker) {
	t.Helper()
	free := 0
	for n := x.tree.free; n != 0; n = x.tree.nodes[n].parent {
		free++
	}
	bookings := 0
	for b := x.free; b != 0; b = x.bookings[b].next {
		bookings++
	}
	for _, c := range x.tree.counts[min(x.tree.slots, len(x.tree.counts)):] {
		if c != 0 {
			t.Fatal("a count is left")
		}
	}
	if x.tree.used != 0 || free != len(x.tree.nodes)-1 || bookings != len(x.bookings)-1 {
		t.Fatalf("left: %d nodes, %d bookings", len(x.tree.nodes)-1-free, len(x.bookings)-1-bookings)
	}
	for w, s := range x.slots {
		if s.blocks != 0 || s.requests != 0 || s.tokens != 0 || s.first != 0 || s.unpredicted != 0 {
			t.Fatalf("slot %d: %+v", w, s)
		}
	}
}

func FuzzTracker(f *testing.F) {
	f.Add([]byte("some prompts, begun and ended"))
	f.Fuzz(play)
}

func TestRandomRequests(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for range 1500 {
		data := make([]byte, 100+r.IntN(1500))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		play(t, data)
	}
}

func TestWarmTrackerAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	var prompts [][]uint64
	for range 300 {
		data := make([]byte, 40)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		prompts = append(prompts, prompt(&dice{data}, 3))
	}
	x := New(8)
	var shared Shared
	var live []Booking
	round := func() {
		live = live[:0]
		for i, p := range prompts {
			x.Shared(p, &shared)
			live = append(live, x.Add(Slot(i%8), p, i%2, Load{Tokens: 100, Ns: 50}, uint64(i)))
			if i >= 50 {
				x.PrefillDone(live[i-40], uint64(i))
				x.Free(live[i-50], uint64(i))
			}
		}
		for _, b := range live[len(live)-50:] {
			x.Free(b, 1e6)
		}
	}
	round()
	if n := testing.AllocsPerRun(5, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	empty(t, x)
}

// Examples 22 to 24 of router notes §5.
func TestExamples(t *testing.T) {
	x := New(1)
	x.Add(0, nil, 0, Load{2831, 166_500_000}, 130_000_000)
	if at0, at1 := x.Tokens(0, 130_000_000), x.Tokens(0, 136_750_000); at0 != 2831 || at1 != 2717 {
		t.Errorf("22: %d, %d", at0, at1)
	}
	x = New(1)
	x.Add(0, nil, 0, Load{2024, 55_500_000}, 372_000_000)
	r9 := x.Add(0, nil, 0, Load{2982, Unknown}, 375_000_000)
	if got := x.Tokens(0, 375_000_000); got != 4897 {
		t.Errorf("23: %d", got)
	}
	x.Free(r9, 435_750_000)
	if got := x.Tokens(0, 435_750_000); got != 0 {
		t.Errorf("23, freed: %d", got)
	}
	x = New(1)
	x.Add(0, []uint64{1, 2}, 0, Load{}, 0)
	x.Add(0, []uint64{1, 3, 4}, 0, Load{}, 0)
	var shared Shared
	x.Shared([]uint64{1, 3, 9}, &shared)
	if x.Blocks(0) != 4 || len(shared.Slots) != 1 || shared.Blocks[0] != 2 {
		t.Errorf("24: %d blocks, %v", x.Blocks(0), shared)
	}
}

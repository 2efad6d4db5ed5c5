package offload

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// naive is shared memory that looks everything up and keeps nothing up to date
// but what is left of copies.
type naive struct {
	o       config.HostOffload
	state   map[uint64]State
	readers map[uint64]int
	used    []uint64 // resident contents, the newest last
	jobs    [2][]naiveJob
	nowMs   float64
	log     []naiveEnd
}

type naiveJob struct {
	Copy
	startMs, left, endMs float64
	moves                bool
}

type naiveEnd struct {
	atMs   float64
	client int32
	Ended
}

func (n *naive) rate(d int, client int32) float64 {
	own, total, mine, all := n.o.D2HGBs, n.o.SharedD2HGBs, 0, 0
	if Direction(d) == ToGPU {
		own, total = n.o.H2DGBs, n.o.SharedH2DGBs
	}
	for _, j := range n.jobs[d] {
		if j.moves {
			all++
			if j.Client == client {
				mine++
			}
		}
	}
	r := math.Inf(1)
	if own > 0 {
		r = own * 1e6 / float64(mine)
	}
	if total > 0 {
		r = min(r, total*1e6/float64(all))
	}
	return r
}

// next works out the ends of all copies.
func (n *naive) next() float64 {
	at := math.Inf(1)
	for d := range n.jobs {
		for i := range n.jobs[d] {
			j := &n.jobs[d][i]
			j.endMs = j.startMs
			if j.moves {
				j.endMs = n.nowMs
				if r := n.rate(d, j.Client); !math.IsInf(r, 1) {
					j.endMs = n.nowMs + j.left/r
				}
			}
			at = min(at, j.endMs)
		}
	}
	return at
}

func (n *naive) move(toMs float64) {
	if toMs <= n.nowMs {
		return
	}
	for d := range n.jobs {
		for i := range n.jobs[d] {
			if j := &n.jobs[d][i]; j.moves {
				if r := n.rate(d, j.Client); !math.IsInf(r, 1) {
					j.left = max(j.left-float64(r*(toMs-n.nowMs)), 0)
				}
			}
		}
	}
	n.nowMs = toMs
}

func (n *naive) start() {
	for d := range n.jobs {
		for i := range n.jobs[d] {
			if j := &n.jobs[d][i]; j.startMs <= n.nowMs {
				j.moves = true
			}
		}
	}
}

func (n *naive) advance(toMs float64) {
	for at := n.next(); at <= toMs; at = n.next() {
		n.move(at)
		for d := range n.jobs {
			ended := []naiveJob{}
			n.jobs[d] = slices.DeleteFunc(n.jobs[d], func(j naiveJob) bool {
				if j.moves && j.endMs == at {
					ended = append(ended, j)
				}
				return j.moves && j.endMs == at
			})
			slices.SortFunc(ended, func(a, b naiveJob) int { return cmp.Compare(a.Order, b.Order) })
			for _, j := range ended {
				n.end(j, Direction(d), at)
			}
		}
		n.start()
	}
	n.move(toMs)
}

func (n *naive) end(j naiveJob, d Direction, at float64) {
	n.log = append(n.log, naiveEnd{at, j.Client, Ended{j.ID, d}})
	hashes := slices.Sorted(slices.Values(j.Hashes))
	for _, h := range hashes {
		n.state[h] = Resident
		if d == ToGPU {
			n.readers[h]--
		}
		n.touch(h)
	}
}

func (n *naive) touch(h uint64) {
	if n.state[h] == Resident {
		n.used = append(slices.DeleteFunc(n.used, func(x uint64) bool { return x == h }), h)
	}
}

func (n *naive) store(hashes []uint64, keep []uint64) (evicted []uint64, ok bool) {
	room := n.o.Blocks - len(n.state)
	for _, h := range n.used {
		if room+len(evicted) >= len(hashes) {
			break
		}
		if n.readers[h] == 0 && !slices.Contains(keep, h) {
			evicted = append(evicted, h)
		}
	}
	if room+len(evicted) < len(hashes) {
		return nil, false
	}
	for _, h := range evicted {
		delete(n.state, h)
		n.used = slices.DeleteFunc(n.used, func(x uint64) bool { return x == h })
	}
	for _, h := range hashes {
		n.state[h] = Pending
	}
	return evicted, true
}

func (n *naive) submit(d Direction, c Copy, atMs float64) {
	n.advance(atMs)
	c.Hashes = slices.Clone(c.Hashes)
	n.jobs[d] = append(n.jobs[d], naiveJob{Copy: c, startMs: atMs + n.o.FirstByteLatencyMs, left: float64(c.Bytes)})
	n.start()
}

// Shared memory does what the naive one does, to the last bit.
func TestAgainstNaive(t *testing.T) {
	for seed := range uint64(200) {
		if against(t, seed); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzMemory(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(against)
}

func against(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	gbs := func() float64 { return []float64{0, 0.25, 1, 1.5, 4, rng.Float64() * 3}[rng.IntN(6)] }
	const clients = 3
	o := config.HostOffload{
		Scope: config.ClusterShared, Blocks: rng.IntN(12) + 1, D2HGBs: gbs(), H2DGBs: gbs(), SharedD2HGBs: gbs(), SharedH2DGBs: gbs(),
		FirstByteLatencyMs: []float64{0, 0, 0.5, 2}[rng.IntN(4)],
	}
	m := New(o, clients)
	n := &naive{o: o, state: map[uint64]State{}, readers: map[uint64]int{}}
	now, ids := 0.0, int32(0)
	pick := func(want State, most int) (list []uint64) {
		for range rng.IntN(most) + 1 {
			h := rng.Uint64N(16) + 1
			if m.State(h) == want && !slices.Contains(list, h) {
				list = append(list, h)
			}
		}
		return list
	}
	for range 120 {
		switch at := m.NextMs(); rng.IntN(6) {
		case 0:
			now += float64(rng.IntN(8)) / 4
		case 1:
			if !math.IsInf(at, 1) {
				now = max(now, at)
			}
		case 2:
			h := rng.Uint64N(16) + 1
			m.Touch(h)
			n.touch(h)
		case 3:
			m.Advance(now)
			n.advance(now)
			missing, keep := pick(Absent, 4), pick(Resident, 2)
			evicted, stored := n.store(missing, keep)
			if m.Store(missing, keep) != stored || !slices.Equal(m.Evicted(), evicted) && len(evicted) > 0 {
				t.Fatalf("store %v: evicted %v, want %v", missing, m.Evicted(), evicted)
			}
			if stored && len(missing) > 0 {
				ids++
				c := Copy{Client: rng.Int32N(clients), ID: ids, Order: m.Decide(), Bytes: len(missing) * 500_000, Hashes: missing}
				m.Submit(ToHost, c, now)
				n.submit(ToHost, c, now)
			}
		default:
			m.Advance(now)
			n.advance(now)
			if found := pick(Resident, 4); len(found) > 0 {
				for _, h := range found {
					m.Read(h)
					n.readers[h]++
				}
				ids++
				c := Copy{Client: rng.Int32N(clients), ID: ids, Order: m.Decide(), Bytes: len(found) * 500_000, Hashes: found}
				m.Submit(ToGPU, c, now)
				n.submit(ToGPU, c, now)
			}
		}
		compare(t, m, n, now)
	}
}

// compare goes to nowMs and compares everything that can be seen then.
func compare(t *testing.T, m *Memory, n *naive, nowMs float64) {
	t.Helper()
	m.Advance(nowMs)
	n.advance(nowMs)
	if got, want := m.NextMs(), n.next(); got != want {
		t.Fatalf("at %v: next at %v, want %v", nowMs, got, want)
	}
	for client := range int32(3) {
		var want []Ended
		for _, e := range n.log {
			if e.client == client {
				want = append(want, e.Ended)
			}
		}
		if got := m.Take(client); !slices.Equal(got, want) {
			t.Fatalf("at %v: client %d is told of %v, want %v", nowMs, client, got, want)
		}
	}
	n.log = n.log[:0]
	if m.Used() != len(n.state) || m.Resident() != len(n.used) {
		t.Fatalf("at %v: %d used, %d resident, want %d and %d", nowMs, m.Used(), m.Resident(), len(n.state), len(n.used))
	}
	for h := range uint64(17) {
		if m.State(h) != n.state[h] {
			t.Fatalf("at %v: content %d is %v, want %v", nowMs, h, m.State(h), n.state[h])
		}
	}
}

// Copies of warm memory allocate nothing.
func TestCopiesAllocateNothing(t *testing.T) {
	for _, scope := range []config.HostScope{config.RankLocal, config.ClusterShared} {
		o := config.DefaultHostOffload(6)
		o.Scope = scope
		m := New(o, 2)
		now, next := 0.0, uint64(0)
		hashes := make([]uint64, 2)
		round := func() {
			for client := range int32(2) {
				hashes[0], hashes[1] = next%9+1, next%9+21
				next++
				if m.State(hashes[0]) == Resident {
					m.Read(hashes[0])
					m.Submit(ToGPU, Copy{Client: client % int32(len(m.boxes)), Order: m.Decide(), Bytes: 1e6, Hashes: hashes[:1]}, now)
				} else if m.State(hashes[0])+m.State(hashes[1]) == Absent && m.Store(hashes, nil) {
					m.Submit(ToHost, Copy{Client: client % int32(len(m.boxes)), Order: m.Decide(), Bytes: 2e6, Hashes: hashes}, now)
				}
			}
			now += 0.75
			m.Advance(now)
			m.Take(0)
			m.Take(1)
		}
		for range 200 {
			round()
		}
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("scope %d: %v allocations", scope, n)
		}
	}
}

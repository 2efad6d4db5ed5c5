package offload

import (
	"math"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// own is memory of one client: 4 GB/s to the GPU, 0.5 ms to the first byte.
func own() *Memory {
	return New(config.HostOffload{Blocks: 8, D2HGBs: 1, H2DGBs: 4, FirstByteLatencyMs: 0.5}, 1)
}

// shared is memory of clients with a GB/s each, and as much in all as two have.
func shared(clients int, latencyMs float64) *Memory {
	return New(config.HostOffload{
		Scope: config.ClusterShared, Blocks: 8, D2HGBs: 1, H2DGBs: 1, SharedD2HGBs: 2, SharedH2DGBs: 2, FirstByteLatencyMs: latencyMs,
	}, clients)
}

// Copies of one client follow each other in each direction.
func TestCopiesFollowEachOther(t *testing.T) {
	m := own()
	for i, c := range []struct {
		bytes        int
		from, wanted float64
	}{
		{8e6, 10, 12.5},   // latency, 2 ms
		{4e6, 11, 13.5},   // behind the first
		{4e6, 20, 21.5},   // idle
		{4e6, 21.2, 22.7}, // its latency passes while the other copies
	} {
		if got := m.Submit(ToGPU, Copy{Bytes: c.bytes, Order: m.Decide()}, c.from); got != c.wanted {
			t.Errorf("copy %d ends at %v, want %v", i, got, c.wanted)
		}
	}
	if m.NextMs() != 12.5 {
		t.Errorf("next at %v", m.NextMs())
	}
	instant := New(config.HostOffload{Blocks: 1}, 1)
	if got := instant.Submit(ToHost, Copy{Bytes: 1e9}, 7); got != 7 {
		t.Errorf("without a bandwidth it ends at %v", got)
	}
}

// What ends at one time ends in one order: stores, then loads, and each kind as
// decided.
func TestEndsAtOneTime(t *testing.T) {
	m := shared(3, 0)
	m.Store([]uint64{1, 2, 3}, nil)
	m.Arrive([]uint64{1, 2})
	first, second, third := m.Decide(), m.Decide(), m.Decide()
	m.Read(1)
	m.Read(2)
	m.Submit(ToGPU, Copy{Client: 0, ID: 7, Order: second, Bytes: 1e6, Hashes: []uint64{2}}, 5)
	m.Submit(ToGPU, Copy{Client: 0, ID: 6, Order: first, Bytes: 1e6, Hashes: []uint64{1}}, 5)
	m.Submit(ToHost, Copy{Client: 0, ID: 8, Order: third, Bytes: 2e6, Hashes: []uint64{3}}, 5)
	if m.NextMs() != 7 {
		t.Fatalf("next at %v, want 7: two loads of one client share its bandwidth", m.NextMs())
	}
	m.Advance(6)
	if m.News(0) {
		t.Error("news before anything has ended")
	}
	m.Advance(7)
	want := []Ended{{8, ToHost}, {6, ToGPU}, {7, ToGPU}}
	if got := m.Take(0); !slices.Equal(got, want) {
		t.Errorf("ended %v, want %v", got, want)
	}
	if !m.News(1) || len(m.Take(1)) != 0 || m.News(1) || m.News(0) {
		t.Error("the others' news are wrong")
	}
	// The stored content came first, then those that were read.
	if !m.Store([]uint64{11, 12, 13, 14, 15, 16}, nil) || !slices.Equal(m.Evicted(), []uint64{3}) {
		t.Errorf("evicted %v, want 3", m.Evicted())
	}
	if !math.IsInf(m.NextMs(), 1) {
		t.Errorf("next at %v", m.NextMs())
	}
}

// Engine notes §11: each copy has an equal part of its client's bandwidth or of
// the memory's, whichever is less, from its first byte on.
func TestFairShares(t *testing.T) {
	m := shared(3, 1)
	submit := func(client int32, bytes int, at float64) {
		m.Submit(ToHost, Copy{Client: client, Order: m.Decide(), Bytes: bytes}, at)
	}
	ends := func() (list []float64) {
		for at := m.NextMs(); !math.IsInf(at, 1); at = m.NextMs() {
			m.Advance(at)
			for client := range int32(3) {
				for range m.Take(client) {
					list = append(list, at)
				}
			}
		}
		return list
	}
	submit(0, 2e6, 0)
	if got := ends(); !slices.Equal(got, []float64{3}) {
		t.Errorf("alone: %v, want the latency and 2 ms", got)
	}
	submit(0, 1e6, 10)
	submit(0, 1e6, 10)
	submit(1, 1e6, 10)
	// Three share 2 GB/s, but the two of client 0 have 0.5 each.
	if got := ends(); !slices.Equal(got, []float64{12.5, 13, 13}) {
		t.Errorf("two clients: %v", got)
	}
	submit(0, 1e6, 20)
	submit(0, 1e6, 20.5) // moves from 21.5 on: half of the first is left
	if got := ends(); !slices.Equal(got, []float64{22.5, 23}) {
		t.Errorf("one after the other: %v", got)
	}
}

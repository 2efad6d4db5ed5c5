package offload

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// Contents are written until there is no room, and not at the cost of those that
// are to stay; who reads what another wrote is counted.
func TestDisk(t *testing.T) {
	o := config.DiskOffload{Scope: config.DiskShared, Blocks: 2, WriteGBs: 1, ReadGBs: 0.5, FirstByteLatencyMs: 1}
	d := NewDisk(o, 2)
	if !d.Write(0, 1, nil) || !d.Write(0, 2, nil) || d.Write(0, 3, nil) {
		t.Fatal("two blocks hold two contents on their way, not more or less")
	}
	d.Submit(ToHost, Copy{Client: 0, ID: 4, Order: d.Decide(), Bytes: 2e6, Hashes: []uint64{1, 2}}, 10)
	if d.Probe(1, 1) != Pending {
		t.Error("it is there before it is written")
	}
	for at := d.NextMs(); at <= 13; at = d.NextMs() {
		d.Advance(at)
	}
	if got := d.Take(0); len(got) != 1 || got[0] != (Ended{4, ToHost}) || !d.News(1) {
		t.Errorf("ended %v", got)
	}
	if d.Probe(1, 1) != Resident || d.Probe(1, 9) != Absent {
		t.Error("what is there is not known")
	}
	d.Read(1, 1)
	d.Submit(ToGPU, Copy{Client: 1, ID: 5, Order: d.Decide(), Bytes: 1e6, Hashes: []uint64{1}}, 20)
	if d.Write(0, 3, []uint64{2}) {
		t.Error("dropped what is read or what is to stay")
	}
	d.Advance(23)
	if !d.Write(1, 3, []uint64{1}) || d.State(0, 2) != Absent || d.State(0, 1) != Resident {
		t.Error("the wrong one was dropped")
	}
	want := DiskStats{
		Probes: 3, Hits: 1, Pending: 1, Evictions: 1, ReadOfOthers: 1, ResidentBlocks: 1, PendingBlocks: 1,
		Write: Traffic{1, 1, 2e6, 3}, Read: Traffic{1, 1, 1e6, 3},
	}
	if got := d.Stats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

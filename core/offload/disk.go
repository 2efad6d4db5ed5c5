package offload

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
)

// Disk is what lies behind host memory (tier G3): contents that were stored
// there are written through to it, and those that host memory no longer has are
// read back into it. ToHost is the direction of writes, ToGPU that of reads.
//
// It is the disks of all workers of a run, each its own or one of all. Time passes
// for all of them at once, and each worker hears that something has ended on any.
// The copies of a worker that are under way at once share its bandwidth.
type Disk struct {
	disks   []*Memory // one of all workers, or each worker's
	boxes   []box     // by worker
	decided uint64
	traffic [2]Traffic
	stats   DiskStats
	one     [1]uint64 // scratch
}

// DiskStats counts what happened on a disk.
type DiskStats struct {
	Probes, Hits, Pending int64 // contents looked up; of them resident, and on their way
	Evictions             int64 // contents dropped for others
	ReadOfOthers          int64 // contents read that another client wrote
	Bypassed              int64 // requests that restore no more
	Read, Write           Traffic
	ResidentBlocks        int64
	PendingBlocks         int64
}

// NewDisk returns empty disks as o describes them for so many workers.
func NewDisk(o config.DiskOffload, workers int) *Disk {
	d := &Disk{boxes: make([]box, workers)}
	each := config.HostOffload{
		Scope: config.ClusterShared, Blocks: o.Blocks, D2HGBs: o.WriteGBs, H2DGBs: o.ReadGBs, FirstByteLatencyMs: o.FirstByteLatencyMs,
	}
	n := workers
	if o.Scope == config.DiskShared {
		each.SharedD2HGBs, each.SharedH2DGBs = o.SharedWriteGBs, o.SharedReadGBs
		n = 1
	}
	for range n {
		m := New(each, workers)
		m.boxes, m.traffic = d.boxes, &d.traffic
		d.disks = append(d.disks, m)
	}
	return d
}

// of is the disk of a worker.
func (d *Disk) of(worker int32) *Memory { return d.disks[min(int(worker), len(d.disks)-1)] }

// Decide is the number of a copy that is decided on now: of those that end at
// one time on one disk the lowest comes first.
func (d *Disk) Decide() uint64 {
	d.decided++
	return d.decided
}

// Submit begins a copy at nowMs; its client is a worker.
func (d *Disk) Submit(dir Direction, c Copy, nowMs float64) {
	d.Advance(nowMs)
	d.of(c.Client).Submit(dir, c, nowMs)
}

// NextMs is when something happens next on any disk, +Inf if no copy is under
// way.
func (d *Disk) NextMs() float64 {
	ms := math.Inf(1)
	for _, m := range d.disks {
		ms = min(ms, m.NextMs())
	}
	return ms
}

// Advance lets happen what happens until toMs.
func (d *Disk) Advance(toMs float64) {
	for atMs := d.NextMs(); atMs <= toMs; atMs = d.NextMs() {
		for _, m := range d.disks {
			m.reach(atMs)
		}
	}
	for _, m := range d.disks {
		m.move(toMs)
	}
}

// News reports whether a copy of anybody's has ended since the worker last took
// what its box holds.
func (d *Disk) News(worker int32) bool { return d.boxes[worker].news }

// Take empties a worker's box: its own copies that have ended, in order. The
// list is valid until the next Advance.
func (d *Disk) Take(worker int32) []Ended { return d.of(worker).Take(worker) }

// State is where a content is on the disk of a worker.
func (d *Disk) State(worker int32, hash uint64) State { return d.of(worker).State(hash) }

// Probe is State for a content that the worker wants to read.
func (d *Disk) Probe(worker int32, hash uint64) State {
	s := d.State(worker, hash)
	d.stats.Probes++
	switch s {
	case Pending:
		d.stats.Pending++
	case Resident:
		d.stats.Hits++
		d.of(worker).Touch(hash)
	}
	return s
}

// Write makes an absent content pending, if there can be room for it, and
// reports whether there was.
func (d *Disk) Write(worker int32, hash uint64, keep []uint64) bool {
	m := d.of(worker)
	d.one[0] = hash
	if !m.Store(d.one[:], keep) {
		return false
	}
	d.stats.Evictions += int64(len(m.Evicted()))
	m.entries[m.table.Get(hash)].owner = worker
	return true
}

// Read begins to read a resident content, which stays until the copy ends.
func (d *Disk) Read(worker int32, hash uint64) { d.of(worker).Read(hash) }

// Bypass is told of a request that restores no more.
func (d *Disk) Bypass() { d.stats.Bypassed++ }

// Stats are the counts so far.
func (d *Disk) Stats() DiskStats {
	s := d.stats
	s.Read, s.Write = d.traffic[ToGPU], d.traffic[ToHost]
	for _, m := range d.disks {
		s.ReadOfOthers += m.foreign
		s.ResidentBlocks += int64(m.there)
		s.PendingBlocks += int64(m.used - m.there)
	}
	return s
}

// Tiers are where the blocks of a rank go besides its GPU. What is nil is the
// rank's own, if its configuration asks for it.
type Tiers struct {
	Host   *Memory
	Disk   *Disk
	Client int32 // the rank's number among those of Host
	Worker int32 // the rank's number among the workers of Disk
}

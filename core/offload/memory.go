package offload

import "github.com/dryserve/dryserve/core/config"

// Direction is where a copy goes.
type Direction uint8

// Directions of copies.
const (
	ToHost Direction = iota
	ToGPU
)

// Copy is a copy of contents between host memory and the GPU of a client.
type Copy struct {
	Client int32
	ID     int32  // the client's name for it
	Order  uint64 // from Decide
	Bytes  int
	Hashes []uint64 // the contents; the list stays the caller's
}

// Ended tells a client that a copy of its own has ended.
type Ended struct {
	ID  int32
	Dir Direction
}

// Memory is host memory: a pool and the links to the GPUs of its clients. Time
// passes for all of them at once: what a copy does to the pool it does when it
// ends, whatever its client is doing then. Clients find what has ended in their
// boxes.
type Memory struct {
	*Pool
	shared  bool
	links   [2]link
	boxes   []box // by client
	decided uint64
	traffic *[2]Traffic
	foreign int64 // contents read that another client stored; on disks
}

// Traffic counts the copies of one direction.
type Traffic struct {
	Submitted, Completed int64
	CompletedBytes       int64
	TransferMs           float64 // sum over completed copies: from submission to end
}

// box is what a client has not taken yet.
type box struct {
	ended []Ended
	news  bool // a copy of anybody's has ended
}

// New returns empty memory as o describes it, for so many clients: one, unless
// its scope is config.ClusterShared.
func New(o config.HostOffload, clients int) *Memory {
	shared := o.Scope == config.ClusterShared
	m := &Memory{Pool: NewPool(o.Blocks), shared: shared, boxes: make([]box, clients), traffic: new([2]Traffic)}
	m.links[ToHost] = newLink(o.D2HGBs, o.FirstByteLatencyMs)
	m.links[ToGPU] = newLink(o.H2DGBs, o.FirstByteLatencyMs)
	if shared {
		m.links[ToHost].share(o.SharedD2HGBs, clients)
		m.links[ToGPU].share(o.SharedH2DGBs, clients)
	}
	return m
}

// Grow makes room for so many clients in all.
func (m *Memory) Grow(clients int) {
	for len(m.boxes) < clients {
		m.boxes = append(m.boxes, box{})
		for d := range m.links {
			if l := &m.links[d]; l.shared {
				l.active = append(l.active, 0)
			}
		}
	}
}

// Shared reports whether the memory is one that clients share, also if there is
// but one.
func (m *Memory) Shared() bool { return m.shared }

// Decide is the number of a copy that is decided on now: of those that end at
// one time the lowest comes first.
func (m *Memory) Decide() uint64 {
	m.decided++
	return m.decided
}

// Submit begins a copy, not before fromMs. It returns when the copy ends or, if
// that depends on what other clients do, 0.
func (m *Memory) Submit(d Direction, c Copy, fromMs float64) (endMs float64) {
	if m.shared {
		m.Advance(fromMs)
	}
	m.traffic[d].Submitted++
	return m.links[d].submit(&c, fromMs)
}

// NextMs is when something happens next, +Inf if no copy is under way.
func (m *Memory) NextMs() float64 { return min(m.links[ToHost].next(), m.links[ToGPU].next()) }

// Advance lets happen what happens until toMs: at one time stores before loads,
// each in the order they were decided on. In shared memory it is not only a
// question but an event: bytes are moved until then, and how often that is done
// shows in the last bits of later ends (see the package's comment).
func (m *Memory) Advance(toMs float64) {
	for atMs := m.NextMs(); atMs <= toMs; atMs = m.NextMs() {
		m.reach(atMs)
	}
	m.move(toMs)
}

// reach goes to atMs and ends the copies that end then; nothing happens before.
func (m *Memory) reach(atMs float64) {
	for d := range m.links {
		l := &m.links[d]
		l.move(atMs)
		for i := l.ended(atMs); i >= 0; i = l.ended(atMs) {
			m.end(&l.jobs[i], Direction(d), atMs)
			l.remove(i)
		}
		l.start()
	}
}

func (m *Memory) move(toMs float64) {
	for d := range m.links {
		m.links[d].move(toMs)
	}
}

// end does what the end of a copy does.
func (m *Memory) end(j *job, d Direction, atMs float64) {
	t := &m.traffic[d]
	t.Completed++
	t.CompletedBytes += j.bytes
	t.TransferMs += atMs - j.fromMs
	if d == ToHost {
		m.Arrive(j.hashes)
	} else {
		for _, h := range j.hashes {
			m.Done(h)
			if m.entries[m.table.Get(h)].owner != j.client {
				m.foreign++
			}
		}
		m.Renew(j.hashes)
	}
	b := &m.boxes[j.client]
	b.ended = append(b.ended, Ended{j.id, d})
	for i := range m.boxes {
		m.boxes[i].news = true
	}
}

// News reports whether a copy of anybody's has ended since the client last took
// what its box holds.
func (m *Memory) News(client int32) bool { return m.boxes[client].news }

// Take empties a client's box: its own copies that have ended, in order. The
// list is valid until the next Advance.
func (m *Memory) Take(client int32) []Ended {
	b := &m.boxes[client]
	list := b.ended
	b.ended, b.news = b.ended[:0], false
	return list
}

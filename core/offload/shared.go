package offload

// Direction is where a copy goes.
type Direction uint8

// Directions of copies.
const (
	ToHost Direction = iota
	ToGPU
)

// Ended tells a client that a copy of its own has ended.
type Ended struct {
	Copy int32 // the client's name for it
	Dir  Direction
}

// Shared is a pool of several clients and its two links. Time passes for all
// of them at once: what a copy does to the pool it does when it ends, whatever
// its client is doing then; the client is told by its list of ended copies.
type Shared struct {
	Pool  *Pool
	links [2]Link
	inbox []inbox // by client
	order uint64  // copies decided on
}

type inbox struct {
	ended []Ended
	stir  bool // a copy of anybody's has ended
}

// SharedConfig describes a shared pool: bandwidths in decimal GB/s, of each
// client and in all, by direction; 0 sets no limit.
type SharedConfig struct {
	Blocks    int
	Clients   int
	ClientGBs [2]float64
	TotalGBs  [2]float64
	LatencyMs float64
}

// NewShared returns an empty shared pool.
func NewShared(c SharedConfig) *Shared {
	s := &Shared{Pool: New(c.Blocks), inbox: make([]inbox, c.Clients)}
	for d := range s.links {
		s.links[d] = newLink(c.ClientGBs[d], c.TotalGBs[d], c.LatencyMs, c.Clients)
	}
	return s
}

// Grow makes room for so many clients in all.
func (s *Shared) Grow(clients int) {
	for len(s.inbox) < clients {
		s.inbox = append(s.inbox, inbox{})
		for d := range s.links {
			s.links[d].active = append(s.links[d].active, 0)
		}
	}
}

// Submit starts a copy of contents at nowMs.
func (s *Shared) Submit(d Direction, client, copy int32, order uint64, bytes int, hashes []uint64, nowMs float64) {
	s.Advance(nowMs)
	s.links[d].submit(client, copy, order, bytes, hashes, nowMs)
}

// Decide is the number of a copy that has been decided on: of those that end
// at one time the lowest comes first.
func (s *Shared) Decide() uint64 {
	s.order++
	return s.order
}

// NextMs is when something happens next, +Inf: nothing.
func (s *Shared) NextMs() float64 { return min(s.links[ToHost].next(), s.links[ToGPU].next()) }

// Advance lets happen what happens until toMs.
func (s *Shared) Advance(toMs float64) {
	for {
		at := s.NextMs()
		if !(at <= toMs) {
			s.links[ToHost].move(toMs)
			s.links[ToGPU].move(toMs)
			return
		}
		s.links[ToHost].advance(at, func(j *job) {
			s.Pool.Arrive(j.hashes)
			s.end(j, ToHost)
		})
		s.links[ToGPU].advance(at, func(j *job) {
			for _, h := range j.hashes {
				s.Pool.Done(h)
			}
			s.Pool.Renew(j.hashes)
			s.end(j, ToGPU)
		})
	}
}

func (s *Shared) end(j *job, d Direction) {
	b := &s.inbox[j.client]
	b.ended = append(b.ended, Ended{j.copy, d})
	for i := range s.inbox {
		s.inbox[i].stir = true
	}
}

// News reports whether anything has ended since the client last took it.
func (s *Shared) News(client int32) bool { return s.inbox[client].stir }

// Take is what has ended for a client since it last took it. The list is valid
// until the next Advance.
func (s *Shared) Take(client int32) []Ended {
	b := &s.inbox[client]
	list := b.ended
	b.ended, b.stir = b.ended[:0], false
	return list
}

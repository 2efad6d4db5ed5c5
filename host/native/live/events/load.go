package events

import (
	"sync"
	"time"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/routerwire"
)

// quiet is how long a load must not change before it is told, and how long marks
// are collected.
const quiet = time.Millisecond

// Load tells how many blocks a worker's ranks have in use, when that has changed
// and is quiet again.
type Load struct {
	pub    *Publisher
	worker uint64

	mu      sync.Mutex
	timer   *time.Timer
	rank    int
	used    int
	told    int // rank and value told last
	toldOf  int
	begun   bool
	pending bool
}

// NewLoad returns the load of a worker.
func NewLoad(p *Publisher, worker uint64) *Load {
	l := &Load{pub: p, worker: worker}
	l.timer = time.AfterFunc(time.Hour, l.tell)
	l.timer.Stop()
	return l
}

// Set says how many blocks a rank uses now.
func (l *Load) Set(rank, used int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending && l.rank == rank && l.used == used || !l.pending && l.begun && l.toldOf == rank && l.told == used {
		return
	}
	l.rank, l.used, l.pending = rank, used, true
	l.timer.Reset(quiet)
}

func (l *Load) tell() {
	l.mu.Lock()
	if !l.pending {
		l.mu.Unlock()
		return
	}
	used := uint64(l.used)
	message := routerwire.ActiveLoad{WorkerID: l.worker, Rank: uint32(l.rank), UsedBlocks: &used}
	l.told, l.toldOf, l.begun, l.pending = l.used, l.rank, true, false
	l.mu.Unlock()
	_ = l.pub.Send(message) // the type can always be written
}

// Marks tells that prompts have been computed, in batches.
type Marks struct {
	pub    *Publisher
	worker uint64

	mu    sync.Mutex
	timer *time.Timer
	batch []mark
}

// mostMarks is the largest batch.
const mostMarks = 256

type mark struct {
	Request string  `msgpack:"request_id"`
	Worker  ranked  `msgpack:"worker"`
	Data    string  `msgpack:"data"`
	Router  uint64  `msgpack:"router_id"`
	Lora    *string `msgpack:"lora_name"`
}

type ranked struct {
	Worker uint64 `msgpack:"worker_id"`
	Rank   uint32 `msgpack:"dp_rank"`
}

type marks struct {
	Events []mark `msgpack:"events"`
}

// NewMarks returns the marks of a worker.
func NewMarks(p *Publisher, worker uint64) *Marks {
	m := &Marks{pub: p, worker: worker}
	m.timer = time.AfterFunc(time.Hour, m.tell)
	m.timer.Stop()
	return m
}

// Prefilled says that a request's prompt has been computed.
func (m *Marks) Prefilled(request string, rank int) {
	m.mu.Lock()
	m.batch = append(m.batch, mark{request, ranked{m.worker, uint32(rank)}, "MarkPrefillCompleted", m.worker, nil})
	n := len(m.batch)
	if n == 1 {
		m.timer.Reset(quiet)
	}
	m.mu.Unlock()
	if n >= mostMarks {
		m.tell()
	}
}

func (m *Marks) tell() {
	m.mu.Lock()
	batch := m.batch
	m.batch = nil
	m.mu.Unlock()
	switch {
	case m.pub.by.single():
		for _, x := range batch {
			_ = m.pub.Send(x)
		}
	case len(batch) > 0:
		_ = m.pub.Send(marks{batch})
	}
}

// Passes tells what a worker's passes consisted of.
type Passes struct {
	pub    *Publisher
	worker string

	mu      sync.Mutex
	counts  []uint64 // by rank
	timer   *time.Timer
	stopped bool
}

// heartbeat is after how long without a pass a worker says that there was none.
const heartbeat = time.Second

// NewPasses returns the passes of a worker, a decimal number, with so many ranks.
func NewPasses(p *Publisher, worker string, ranks int) *Passes {
	x := &Passes{pub: p, worker: worker, counts: make([]uint64, ranks)}
	x.mu.Lock() // the first beat waits until its timer is there
	defer x.mu.Unlock()
	x.timer = time.AfterFunc(heartbeat, x.beat)
	return x
}

type forwardPass struct {
	Version   int       `msgpack:"version"`
	Worker    string    `msgpack:"worker_id"`
	Rank      int       `msgpack:"dp_rank"`
	Counter   uint64    `msgpack:"counter_id"`
	WallTime  float64   `msgpack:"wall_time"` // seconds
	Scheduled scheduled `msgpack:"scheduled_requests"`
	Queued    queued    `msgpack:"queued_requests"`
}

type scheduled struct {
	Prefills        int     `msgpack:"num_prefill_requests"`
	PrefillTokens   int     `msgpack:"sum_prefill_tokens"`
	PrefillVariance float64 `msgpack:"var_prefill_length"`
	PrefillKVTokens int     `msgpack:"sum_prefill_kv_tokens"`
	Decodes         int     `msgpack:"num_decode_requests"`
	DecodeKVTokens  int     `msgpack:"sum_decode_kv_tokens"`
	DecodeVariance  float64 `msgpack:"var_decode_kv_tokens"`
}

type queued struct {
	Prefills        int     `msgpack:"num_prefill_requests"`
	PrefillTokens   int     `msgpack:"sum_prefill_tokens"`
	PrefillVariance float64 `msgpack:"var_prefill_length"`
	Decodes         int     `msgpack:"num_decode_requests"`
	DecodeKVTokens  int     `msgpack:"sum_decode_kv_tokens"`
	DecodeVariance  float64 `msgpack:"var_decode_kv_tokens"`
}

// Passed tells of one pass of a rank.
func (x *Passes) Passed(rank int, f *engine.Forward) {
	x.send(rank, forwardPass{
		WallTime:  f.DurationMs / 1000,
		Scheduled: scheduled{f.Prefills, f.PrefillTokens, f.PrefillVariance, f.PrefillKVTokens, f.Decodes, f.DecodeKVTokens, f.DecodeVariance},
		Queued:    queued{f.QueuedPrefills, f.QueuedPrefillLen, f.QueuedPrefillVar, f.QueuedDecodes, f.QueuedDecodeLen, f.QueuedDecodeVar},
	})
	x.mu.Lock()
	if !x.stopped {
		x.timer.Reset(heartbeat)
	}
	x.mu.Unlock()
}

func (x *Passes) send(rank int, f forwardPass) {
	x.mu.Lock()
	x.counts[rank]++
	f.Version, f.Worker, f.Rank, f.Counter = 1, x.worker, rank, x.counts[rank]
	x.mu.Unlock()
	_ = x.pub.Send(f)
}

// beat says that nothing has happened.
func (x *Passes) beat() {
	for rank := range x.counts {
		x.send(rank, forwardPass{})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.stopped {
		x.timer.Reset(heartbeat)
	}
}

// Stop ends the heartbeat.
func (x *Passes) Stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stopped = true
	x.timer.Stop()
}

// Package timeline writes a recorded run as a Perfetto trace, the protobuf that
// ui.perfetto.dev opens.
//
// It owns which tracks there are and what stands on them. A worker is a process;
// each of its ranks is a thread whose slices are the passes it had work in, with
// counters of its running and waiting requests and of the KV blocks they hold,
// as they are at the end of its passes. Requests lie in lanes of a process of
// their own: a slice from arrival to end, inside it queued, prefill and decode,
// and preempted until it is admitted again; with two pools, held until there is
// room where it will be decoded, transfer, and transferred until it is admitted
// there. Requests that have not ended have slices without an end. It does not
// own the recording (core/replay).
//
// Invariants: it writes as it is told and keeps only what requests in flight
// need; slices of a track never overlap but by nesting; times are simulated ones
// in nanoseconds from the start of the run.
package timeline

import (
	"bufio"
	"container/heap"
	"fmt"
	"io"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/fleet"
	"google.golang.org/protobuf/encoding/protowire"
)

// names are the words of a trace that are written once: event names, then names
// of the numbers beside an event. Their places count from 1.
var (
	events = []string{"prefill", "decode", "prefill and decode", "queued", "preempted", "held", "transfer", "transferred"}
	notes  = []string{
		"prefills", "prefill_tokens", "decodes", "output_tokens", "waited_for_ranks_us", "input_tokens", "requested_output_tokens",
		"worker", "rank", "cached_tokens", "host_tokens", "status", "pool", "tokens",
	}
)

// Places in events.
const (
	prefill = 1 + iota
	decode
	mixed
	queued
	preempted
	held
	transfer
	transferred
)

// Places in notes.
const (
	prefills = 1 + iota
	prefillTokens
	decodes
	outputTokens
	waitedUs
	inputTokens
	requestedTokens
	workerNote
	rankNote
	cachedTokens
	hostTokens
	statusNote
	poolNote
	tokensNote
)

// tracksOfRank: its passes, then the counters running, waiting, blocks.
const tracksOfRank = 4

// Writer writes a trace.
type Writer struct {
	out   *bufio.Writer
	err   error
	load  *workload.Workload
	name  func(turn int32) string
	fleet fleet.Fleet

	// The first tracks of ranks and of lanes; those of processes stand before.
	firstRank, firstLane int64

	shown               [][tracksOfRank - 1]int32 // the counters as they were written last, by rank
	flying              map[int32]*request        // by turn
	lanes               int                       // described so far
	free                lanes
	packet, inner, deep message // scratch
}

// request is one in flight.
type request struct {
	lane   int
	tokens bool // it has had its first one
}

// New begins a trace of a run of cfg on a workload. name names a request by its
// turn.
func New(w io.Writer, cfg config.Replay, load *workload.Workload, name func(turn int32) string) *Writer {
	f := fleet.Of(cfg)
	t := &Writer{
		out: bufio.NewWriterSize(w, 1<<16), load: load, name: name, fleet: f,
		shown: make([][tracksOfRank - 1]int32, f.Ranks), flying: map[int32]*request{},
	}
	t.words()
	t.process(1, "requests")
	t.firstRank = 2
	for i := range f.Pools {
		for worker := range f.Pools[i].Workers {
			t.process(t.firstRank, f.Pools[i].WorkerName(worker))
			t.firstRank++
		}
	}
	t.firstLane = t.track(f.Ranks, 0)
	pid, id := int64(2), 0
	for i := range f.Pools {
		for range f.Pools[i].Workers {
			for rank := range f.Pools[i].Engine.DPSize {
				t.rank(pid, id, rank, f.Pools[i].Engine.DPSize > 1)
				id++
			}
			pid++
		}
	}
	return t
}

// Add takes the next chunk of a recording. Its error is the writer's.
func (t *Writer) Add(r *replay.Recording) error {
	for i := range r.Passes {
		t.pass(&r.Passes[i])
	}
	for i := range r.Events {
		t.step(&r.Events[i])
	}
	return t.err
}

// Close writes what is left.
func (t *Writer) Close() error {
	if err := t.out.Flush(); t.err == nil {
		t.err = err
	}
	return t.err
}

// process pid has the track of the same number.
func (t *Writer) process(pid int64, name string) {
	t.inner, t.deep = t.inner[:0], t.deep[:0]
	t.deep.number(processPID, pid)
	t.deep.text(processName, name)
	t.inner.number(trackUUID, pid)
	t.inner.message(trackProcess, t.deep)
	t.describe()
}

// track is the number of one of the tracks of a rank.
func (t *Writer) track(id, which int) int64 { return t.firstRank + int64(id*tracksOfRank+which) }

// rank describes the tracks of a rank of a process. In counters of a lone rank
// there is no need to say which.
func (t *Writer) rank(pid int64, id, rank int, several bool) {
	name, suffix := "passes", ""
	if several {
		name, suffix = fmt.Sprintf("passes of rank %d", rank), fmt.Sprintf(", rank %d", rank)
	}
	t.inner, t.deep = t.inner[:0], t.deep[:0]
	t.deep.number(threadPID, pid)
	t.deep.number(threadTID, 1+int64(rank))
	t.deep.text(threadName, name)
	t.inner.number(trackUUID, t.track(id, 0))
	t.inner.number(trackParent, pid)
	t.inner.message(trackThread, t.deep)
	t.describe()
	for i, c := range []struct{ name, unit string }{{"running", "requests"}, {"waiting", "requests"}, {"KV blocks in use", "blocks"}} {
		t.inner, t.deep = t.inner[:0], t.deep[:0]
		t.deep.text(counterUnit, c.unit)
		t.inner.number(trackUUID, t.track(id, i+1))
		t.inner.text(trackName, c.name+suffix)
		t.inner.number(trackParent, pid)
		t.inner.message(trackCounter, t.deep)
		t.describe()
		t.count(0, id, i, 0)
	}
}

func (t *Writer) pass(p *replay.Pass) {
	id := t.fleet.Rank(p.Pool, p.Worker, p.Rank)
	kind := int64(decode)
	if p.Prefills > 0 {
		kind = prefill
		if p.Decodes > 0 {
			kind = mixed
		}
	}
	if p.Prefills+p.Decodes > 0 {
		t.begin(sliceBegin, t.track(id, 0))
		t.inner.number(eventNameIID, kind)
		t.note(prefills, int64(p.Prefills))
		t.note(prefillTokens, int64(p.PrefillTokens))
		t.note(decodes, int64(p.Decodes))
		t.note(outputTokens, int64(p.Tokens))
		if wait := ns(p.EndMs-p.OwnEndMs) / 1000; wait > 0 {
			t.note(waitedUs, wait)
		}
		t.event(p.StartMs)
		t.begin(sliceEnd, t.track(id, 0))
		t.event(p.EndMs)
	}
	for i, n := range [...]int32{p.Running, p.Waiting, p.ActiveBlocks} {
		if t.shown[id][i] != n {
			t.shown[id][i] = n
			t.count(p.EndMs, id, i, n)
		}
	}
}

func (t *Writer) count(ms float64, id, which int, n int32) {
	t.begin(counter, t.track(id, which+1))
	t.inner.number(eventCounter, int64(n))
	t.event(ms)
}

// step is one in the life of a request.
func (t *Writer) step(e *replay.Event) {
	if e.Kind == replay.Arrived {
		t.arrive(e)
		return
	}
	q := t.flying[e.Turn]
	t.begin(sliceEnd, t.lane(q)) // of the phase before
	t.event(e.AtMs)
	switch e.Kind {
	case replay.Admitted:
		kind := int64(prefill)
		if q.tokens {
			kind = mixed // computes what it lost, then goes on
		} else if len(t.fleet.Pools) > 1 && e.Pool == replay.ServingPool {
			kind = decode // of a prompt that was brought
		}
		t.phase(q, kind)
		t.where(e)
		t.note(cachedTokens, int64(e.Tokens))
		t.note(hostTokens, int64(e.HostTokens))
	case replay.Preempted:
		t.phase(q, preempted)
	case replay.Held:
		t.phase(q, held)
	case replay.Transferring:
		t.phase(q, transfer)
		t.note(tokensNote, int64(e.Tokens))
	case replay.Activated:
		t.phase(q, transferred)
		t.where(e)
	case replay.FirstToken:
		q.tokens = true
		t.phase(q, decode)
	case replay.Ended:
		t.begin(sliceEnd, t.lane(q))
		t.note(outputTokens, int64(e.Tokens))
		t.word(statusNote, statuses[e.Status])
		heap.Push(&t.free, q.lane)
		delete(t.flying, e.Turn)
	}
	t.event(e.AtMs)
}

// where says on which rank it happens.
func (t *Writer) where(e *replay.Event) {
	if len(t.fleet.Pools) > 1 {
		t.word(poolNote, t.fleet.Pool(t.fleet.Rank(e.Pool, e.Worker, e.Rank)).Name())
	}
	t.note(workerNote, int64(e.Worker))
	t.note(rankNote, int64(e.Rank))
}

var statuses = map[replay.TerminalStatus]string{replay.Completed: "completed", replay.Rejected: "rejected", replay.Failed: "failed", replay.Canceled: "canceled"}

func (t *Writer) arrive(e *replay.Event) {
	q := &request{}
	if len(t.free) > 0 {
		q.lane = heap.Pop(&t.free).(int)
	} else {
		q.lane = t.lanes
		t.lanes++
		t.inner = t.inner[:0]
		t.inner.number(trackUUID, t.lane(q))
		t.inner.text(trackName, fmt.Sprintf("lane %d", t.lanes))
		t.inner.number(trackParent, 1)
		t.describe()
	}
	t.flying[e.Turn] = q
	turn := &t.load.Turns[e.Turn]
	t.begin(sliceBegin, t.lane(q))
	t.inner.text(eventName, t.name(e.Turn))
	t.note(inputTokens, int64(turn.Input))
	t.note(requestedTokens, int64(turn.Output))
	t.event(e.AtMs)
	t.phase(q, queued)
	t.event(e.AtMs)
}

func (t *Writer) lane(q *request) int64 { return t.firstLane + int64(q.lane) }

func (t *Writer) phase(q *request, name int64) {
	t.begin(sliceBegin, t.lane(q))
	t.inner.number(eventNameIID, name)
}

// words writes the first packet: what stands for the names from now on.
func (t *Writer) words() {
	t.inner = t.inner[:0]
	for i, list := range [][]string{events, notes} {
		for k, name := range list {
			t.deep = t.deep[:0]
			t.deep.number(internedIID, int64(k+1))
			t.deep.text(internedName, name)
			t.inner.message([...]protowire.Number{internedEvent, internedNote}[i], t.deep)
		}
	}
	t.packet = t.packet[:0]
	t.packet.number(packetFlags, stateCleared)
	t.packet.message(packetInterned, t.inner)
	t.write()
}

// describe writes the track that inner describes.
func (t *Writer) describe() {
	t.packet = t.packet[:0]
	t.packet.message(packetDescriptor, t.inner)
	t.write()
}

// begin begins an event in inner.
func (t *Writer) begin(kind, track int64) {
	t.inner = t.inner[:0]
	t.inner.number(eventType, kind)
	t.inner.number(eventTrack, track)
}

// note adds a number to the event in inner.
func (t *Writer) note(name, n int64) {
	t.deep = t.deep[:0]
	t.deep.number(noteNameIID, name)
	t.deep.number(noteInt, n)
	t.inner.message(eventNote, t.deep)
}

func (t *Writer) word(name int64, s string) {
	t.deep = t.deep[:0]
	t.deep.number(noteNameIID, name)
	t.deep.text(noteText, s)
	t.inner.message(eventNote, t.deep)
}

// event writes the event in inner.
func (t *Writer) event(ms float64) {
	t.packet = t.packet[:0]
	t.packet.number(packetTimestamp, ns(ms))
	t.packet.number(packetFlags, needsState)
	t.packet.message(packetEvent, t.inner)
	t.write()
}

// write writes the packet.
func (t *Writer) write() {
	t.packet.number(packetSequence, 1)
	t.deep = t.deep[:0]
	t.deep.message(tracePacket, t.packet)
	if _, err := t.out.Write(t.deep); t.err == nil {
		t.err = err
	}
}

// lanes are free ones, the lowest first.
type lanes []int

func (l lanes) Len() int           { return len(l) }
func (l lanes) Less(i, j int) bool { return l[i] < l[j] }
func (l lanes) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lanes) Push(x any)        { *l = append(*l, x.(int)) }
func (l *lanes) Pop() any {
	old := *l
	x := old[len(old)-1]
	*l = old[:len(old)-1]
	return x
}

package replay

import (
	"encoding/binary"
	"slices"

	"github.com/dryserve/dryserve/core/prefix"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/workload"
)

// outputSeed is that of the stream from which the reference draws the output
// of every turn that has none planned, session by session and turn by turn
// (replay notes §3.1).
const outputSeed = 0xD37A0A7E5EED

// talk turns a workload of increments into one of prompts: a turn's prompt is
// what was said in its session so far, inputs and outputs, then its own input
// (replay notes §3.2). How much a turn says is known when it ends, so a prompt
// is made then, as a path of engine blocks named by the hash of their tokens.
type talk struct {
	delta   *workload.Workload
	load    *workload.Workload // the workload that is run
	numbers *numbers
	drawn   []uint64 // by turn: its output's place in the stream
	said    []int32  // by turn: tokens it has emitted
	before  []int32  // by turn: the turn before in its session, -1: none
	stream  rng.Stream
	split   func(segment, front int32) // lets the pools follow the paths
	tokens  []uint32                   // scratch: a prompt, or the end of one with its output
	ids     []uint64                   // scratch: a path
	block   []byte                     // scratch: the tokens of a block
}

func newTalk(w *workload.Workload, blockSize int) *talk {
	load := *w
	load.Turns = slices.Clone(w.Turns)
	load.Prompts, load.TraceBlockSize, load.Delta, load.Spoken = prefix.New(), blockSize, false, true
	n := len(w.Turns)
	k := &talk{
		delta: w, load: &load, numbers: newNumbers(), drawn: make([]uint64, n), said: make([]int32, n), before: make([]int32, n),
		stream: rng.New(outputSeed), block: make([]byte, 0, blockSize*seq.TokenBytes),
	}
	k.numbers.addAll(w, 0)
	place, longest, blocks := uint64(0), 0, 0
	for _, s := range w.Sessions {
		last, length := int32(-1), 0
		for at := s.First; at >= 0; at = w.Turns[at].Next {
			t := &w.Turns[at]
			k.before[at], last = last, at
			if k.drawn[at] = place; t.Planned < 0 {
				place += uint64(t.Output)
			}
			if length += int(t.Input); t.Next >= 0 {
				length += int(t.Output)
			}
		}
		longest = max(longest, length)
		blocks += length / blockSize
	}
	k.tokens = make([]uint32, 0, longest)
	k.ids = make([]uint64, 0, longest/blockSize)
	load.Prompts.Room(blocks, n)
	for _, s := range w.Sessions {
		k.prepare(s.First)
	}
	return k
}

// heard takes the end of a turn that has emitted so many tokens, and makes the
// prompt of the next one, if there is one.
func (k *talk) heard(turn, emitted int32) {
	k.said[turn] = emitted
	if next := k.load.Turns[turn].Next; next >= 0 {
		k.prepare(next)
	}
}

// prepare makes the prompt of a turn. Its path begins as that of the turn
// before, whose blocks it repeats, so only what comes after them is spelt.
func (k *talk) prepare(turn int32) {
	t := &k.load.Turns[turn]
	size := k.load.TraceBlockSize
	k.ids, k.tokens = k.ids[:0], k.tokens[:0]
	history := 0
	if b := k.before[turn]; b >= 0 {
		old := &k.load.Turns[b]
		history = int(old.Input) + int(k.said[b])
		k.ids = k.load.Prompts.AppendIDs(k.ids, old.Leaf, history/size)
		k.ending(b, history%size)
	}
	t.Input = int32(history) + k.delta.Turns[turn].Input
	k.appendInput(turn, 0)
	if t.Next >= 0 {
		k.appendOutput(turn, 0, t.Output)
	}
	for i := 0; i+size <= len(k.tokens); i += size {
		k.block = k.block[:0]
		for _, token := range k.tokens[i : i+size] {
			k.block = binary.LittleEndian.AppendUint32(k.block, token)
		}
		k.ids = append(k.ids, seq.LocalHash(k.block))
	}
	t.IDs = int32(len(k.ids))
	t.Leaf = k.load.Prompts.Insert(k.ids, k.split)
}

// request spells the whole prompt of a turn and its output. They are valid
// until the next call of any method.
func (k *talk) request(turn int32) (prompt, output []uint32) {
	k.tokens = k.tokens[:0]
	k.history(turn)
	k.appendInput(turn, 0)
	n := len(k.tokens)
	k.appendOutput(turn, 0, k.delta.Turns[turn].Output)
	return k.tokens[:n:n], k.tokens[n:]
}

// history appends everything said before a turn.
func (k *talk) history(turn int32) {
	session := k.load.Sessions[k.load.Turns[turn].Session]
	for at := session.First; at != turn; at = k.load.Turns[at].Next {
		k.appendInput(at, 0)
		k.appendOutput(at, 0, k.said[at])
	}
}

// ending appends the last n tokens said up to the end of a turn.
func (k *talk) ending(turn int32, n int) {
	if n == 0 {
		return
	}
	if said := int(k.said[turn]); n <= said {
		k.appendOutput(turn, int32(said-n), int32(said))
		return
	}
	rest := n - int(k.said[turn])
	if input := int(k.delta.Turns[turn].Input); rest <= input {
		k.appendInput(turn, input-rest)
	} else {
		k.ending(k.before[turn], rest-input)
		k.appendInput(turn, 0)
	}
	k.appendOutput(turn, 0, k.said[turn])
}

// appendInput appends a turn's own input from token number from on.
func (k *talk) appendInput(turn int32, from int) {
	t := &k.delta.Turns[turn]
	size := k.delta.TraceBlockSize
	n := int(t.Input)
	at := len(k.ids)
	k.ids = k.delta.Prompts.AppendIDs(k.ids, t.Leaf, (n+size-1)/size)
	for i := from; i < n; {
		token := k.numbers.of(k.ids[at+i/size])
		for end := min(n, (i/size+1)*size); i < end; i++ {
			k.tokens = append(k.tokens, token)
		}
	}
	k.ids = k.ids[:at]
}

// appendOutput appends tokens from to to (exclusive) of a turn's output.
func (k *talk) appendOutput(turn, from, to int32) {
	if p := k.delta.Turns[turn].Planned; p >= 0 {
		off := k.delta.PlannedOff[p]
		k.tokens = append(k.tokens, k.delta.Planned[off+from:off+to]...)
		return
	}
	k.stream.Seek(k.drawn[turn] + uint64(from))
	for ; from < to; from++ {
		k.tokens = append(k.tokens, k.stream.Uint32())
	}
}

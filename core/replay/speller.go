package replay

import (
	"encoding/binary"

	"github.com/dryserve/dryserve/core/workload"
)

// speller spells the prompts of a workload's turns where tokens are needed.
type speller struct {
	load      *workload.Workload
	numbers   *numbers // of the hash ids
	talk      *talk    // nil: prompts are those of the workload
	traceSize int      // tokens per hash id
	tokens    []uint32 // scratch: a prompt
	ids       []uint64 // scratch: its hash ids
}

// turnID is the UUID of a turn's request: its ordinal counted from 1, as in the
// reference's canonical mode.
func turnID(turn int32) (id [16]byte) {
	binary.BigEndian.PutUint64(id[8:], uint64(turn)+1)
	return id
}

// spell spells a turn's prompt, and its output where that is planned or what was
// said matters. Both are valid until the next call.
func (s *speller) spell(turn int32) (prompt, output []uint32) {
	t := &s.load.Turns[turn]
	if s.talk != nil {
		prompt, output = s.talk.request(turn)
	} else {
		prompt = s.prompt(t)
	}
	if t.Planned >= 0 {
		output = s.load.Planned[s.load.PlannedOff[t.Planned]:s.load.PlannedOff[t.Planned+1]]
	}
	return prompt, output
}

// prompt spells a turn's prompt: each trace hash id is TraceBlockSize times the
// token that is its number (replay notes §3.1).
func (s *speller) prompt(t *workload.Turn) []uint32 {
	n := int(t.Input)
	if s.load.Drawn {
		s.tokens = workload.AppendDrawn(s.tokens[:0], t.Session, n)
		return s.tokens
	}
	s.ids = s.load.Prompts.AppendIDs(s.ids[:0], t.Leaf, (n+s.traceSize-1)/s.traceSize)
	if cap(s.tokens) < n {
		s.tokens = make([]uint32, n+n/2)
	}
	s.tokens = s.tokens[:n]
	rest := s.tokens
	for _, id := range s.ids {
		token := s.numbers.of(id)
		block := rest[:min(s.traceSize, len(rest))]
		for i := range block {
			block[i] = token
		}
		rest = rest[len(block):]
	}
	return s.tokens
}

// numbers gives every hash id of a trace a number: 0, 1, 2, … in order of
// first appearance, row by row (replay notes §3.1). Open addressing.
type numbers struct {
	slots []numbered
	used  uint32
}

type numbered struct {
	id     uint64
	number uint32 // plus one; 0: empty
}

func newNumbers() *numbers { return &numbers{slots: make([]numbered, 1024)} }

// addAll numbers the ids of a workload's turns from the given one on.
func (n *numbers) addAll(w *workload.Workload, from int) {
	var ids []uint64
	for _, t := range w.Turns[from:] {
		ids = w.Prompts.AppendIDs(ids[:0], t.Leaf, int(t.IDs))
		for _, id := range ids {
			n.of(id)
		}
	}
}

// of is the id's number; a new id gets the next one.
func (n *numbers) of(id uint64) uint32 {
	mask := uint64(len(n.slots) - 1)
	for i := (id * 0x9E3779B97F4A7C15 >> 20) & mask; ; i = (i + 1) & mask {
		s := &n.slots[i]
		if s.number != 0 && s.id == id {
			return s.number - 1
		}
		if s.number == 0 {
			n.used++
			*s = numbered{id: id, number: n.used}
			if int(n.used)*2 > len(n.slots) {
				n.grow()
			}
			return n.used - 1
		}
	}
}

func (n *numbers) grow() {
	old := n.slots
	n.slots = make([]numbered, 2*len(old))
	mask := uint64(len(n.slots) - 1)
	for _, s := range old {
		if s.number == 0 {
			continue
		}
		i := (s.id * 0x9E3779B97F4A7C15 >> 20) & mask
		for n.slots[i].number != 0 {
			i = (i + 1) & mask
		}
		n.slots[i] = s
	}
}

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
func (p *speller) spell(turn int32) (prompt, output []uint32) {
	t := &p.load.Turns[turn]
	if p.talk != nil {
		prompt, output = p.talk.request(turn)
	} else {
		prompt = p.prompt(t)
	}
	if t.Planned >= 0 {
		output = p.load.Planned[p.load.PlannedOff[t.Planned]:p.load.PlannedOff[t.Planned+1]]
	}
	return prompt, output
}

// prompt spells a turn's prompt: each trace hash id is TraceBlockSize times the
// token that is its number (replay notes §3.1).
func (p *speller) prompt(t *workload.Turn) []uint32 {
	n := int(t.Input)
	if p.load.Drawn {
		p.tokens = workload.AppendDrawn(p.tokens[:0], t.Session, n)
		return p.tokens
	}
	p.ids = p.load.Prompts.AppendIDs(p.ids[:0], t.Leaf, (n+p.traceSize-1)/p.traceSize)
	if cap(p.tokens) < n {
		p.tokens = make([]uint32, n+n/2)
	}
	p.tokens = p.tokens[:n]
	rest := p.tokens
	for _, id := range p.ids {
		token := p.numbers.of(id)
		block := rest[:min(p.traceSize, len(rest))]
		for i := range block {
			block[i] = token
		}
		rest = rest[len(block):]
	}
	return p.tokens
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

package sglang

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/seq"
)

// events collects the KV events of a rank: those of the pass, to which
// commands given while it is in flight add theirs, and those of a command
// given between passes. Numbers go on through both.
type events struct {
	emit     bool
	tokenIDs bool
	next     uint64 // number of the next event
	logs     [2]eventLog
	at       logIndex // where the next event goes
}

type logIndex uint8

const (
	passLog logIndex = iota
	commandLog
)

// eventLog is a list of events with their blocks and tokens.
type eventLog struct {
	list   []engine.KVEvent
	blocks []engine.KVBlock
	tokens []uint32
}

// begin empties a log and directs what follows to it.
func (v *events) begin(at logIndex) {
	v.at = at
	l := &v.logs[at]
	l.list, l.blocks, l.tokens = l.list[:0], l.blocks[:0], l.tokens[:0]
}

func (v *events) open(e engine.KVEvent) *eventLog {
	l := &v.logs[v.at]
	e.ID = v.next
	v.next++
	e.First = len(l.blocks)
	l.list = append(l.list, e)
	return l
}

func (l *eventLog) add(b engine.KVBlock) {
	l.blocks = append(l.blocks, b)
	l.list[len(l.list)-1].Count++
}

// removed reports hashes that vanished, as one event.
func (v *events) removed(hashes []uint64) {
	if !v.emit || len(hashes) == 0 {
		return
	}
	l := v.open(engine.KVEvent{Kind: engine.Removed})
	for _, h := range hashes {
		l.add(engine.KVBlock{Hash: h})
	}
}

// stored reports page i of a sequence, as part of the last event or as an
// event of its own.
func (v *events) stored(s *seq.Sequence, i int, extend bool) {
	ids := s.Blocks()
	if !extend {
		e := engine.KVEvent{Kind: engine.Stored}
		if i > 0 {
			e.HasParent, e.Parent = true, ids[i-1].Hash
		}
		v.open(e)
	}
	l := &v.logs[v.at]
	b := engine.KVBlock{Hash: ids[i].Hash, Local: ids[i].Local, Tokens: len(l.tokens)}
	if v.tokenIDs {
		l.tokens = s.AppendBlockTokens(l.tokens, i)
	}
	l.add(b)
}

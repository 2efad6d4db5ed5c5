package engine

import "github.com/dryserve/dryserve/core/seq"

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
	list   []KVEvent
	blocks []KVBlock
	tokens []uint32
}

// begin empties a log and directs what follows to it.
func (v *events) begin(at logIndex) {
	v.at = at
	l := &v.logs[at]
	l.list, l.blocks, l.tokens = l.list[:0], l.blocks[:0], l.tokens[:0]
}

func (l *eventLog) open(e KVEvent) {
	e.First = len(l.blocks)
	l.list = append(l.list, e)
}

func (l *eventLog) add(b KVBlock) {
	l.blocks = append(l.blocks, b)
	l.list[len(l.list)-1].Count++
}

// removed reports hashes that vanished from a tier, as one event.
func (v *events) removed(hashes []uint64) {
	if !v.emit || len(hashes) == 0 {
		return
	}
	l := &v.logs[v.at]
	l.open(KVEvent{ID: v.next, Kind: Removed})
	v.next++
	for _, h := range hashes {
		l.add(KVBlock{Hash: h})
	}
}

// stored reports complete block i of a sequence, as part of the last event or
// as an event of its own.
func (v *events) stored(s *seq.Sequence, i int, extend bool) {
	if !v.emit {
		return
	}
	l := &v.logs[v.at]
	ids := s.Blocks()
	if !extend {
		e := KVEvent{ID: v.next, Kind: Stored}
		v.next++
		if i > 0 {
			e.HasParent, e.Parent = true, ids[i-1].Hash
		}
		l.open(e)
	}
	b := KVBlock{Hash: ids[i].Hash, Local: ids[i].Local, Tokens: len(l.tokens)}
	if v.tokenIDs {
		l.tokens = s.AppendBlockTokens(l.tokens, i)
	}
	l.add(b)
}

// hostRemoved reports contents that host memory dropped.
func (v *events) hostRemoved(hashes []uint64) {
	n := len(v.logs[v.at].list)
	v.removed(hashes)
	if l := &v.logs[v.at]; len(l.list) > n {
		l.list[n].Host = true
	}
}

// hostStored reports contents that arrived in host memory; neighbours share an
// event.
func (v *events) hostStored(blocks []hostBlock) {
	if !v.emit {
		return
	}
	l := &v.logs[v.at]
	for i, b := range blocks {
		if i == 0 || blocks[i-1].index+1 != b.index {
			l.open(KVEvent{ID: v.next, Kind: Stored, Host: true, Start: b.index, HasParent: b.index > 0, Parent: b.parent})
			v.next++
		}
		at := len(l.tokens)
		l.tokens = append(l.tokens, b.tokens...)
		l.add(KVBlock{Hash: b.hash, Local: b.local, Tokens: at})
	}
}

package engine

import "github.com/dryserve/dryserve/core/seq"

// events collects the KV events of a pass. Numbers go on from pass to pass.
type events struct {
	emit     bool
	tokenIDs bool
	next     uint64 // number of the next event
	list     []KVEvent
	blocks   []KVBlock
	tokens   []uint32
}

func (v *events) reset() {
	v.list, v.blocks, v.tokens = v.list[:0], v.blocks[:0], v.tokens[:0]
}

func (v *events) open(e KVEvent) {
	e.ID = v.next
	e.First = len(v.blocks)
	v.next++
	v.list = append(v.list, e)
}

func (v *events) add(b KVBlock) {
	v.blocks = append(v.blocks, b)
	v.list[len(v.list)-1].Count++
}

// removed reports hashes that vanished, as one event.
func (v *events) removed(hashes []uint64) {
	if !v.emit || len(hashes) == 0 {
		return
	}
	v.open(KVEvent{Kind: Removed})
	for _, h := range hashes {
		v.add(KVBlock{Hash: h})
	}
}

// stored reports complete block i of a sequence, as part of the last event or
// as an event of its own.
func (v *events) stored(s *seq.Sequence, i int, extend bool) {
	if !v.emit {
		return
	}
	ids := s.Blocks()
	if !extend {
		e := KVEvent{Kind: Stored}
		if i > 0 {
			e.HasParent, e.Parent = true, ids[i-1].Hash
		}
		v.open(e)
	}
	b := KVBlock{Hash: ids[i].Hash, Local: ids[i].Local, Tokens: len(v.tokens)}
	if v.tokenIDs {
		v.tokens = s.AppendBlockTokens(v.tokens, i)
	}
	v.add(b)
}

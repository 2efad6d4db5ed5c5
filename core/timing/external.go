package timing

import "math"

// QueryKind says which duration a Query asks for.
type QueryKind uint8

// AskPrefill asks how long prompts take, AskDecode one decode step.
const (
	AskPrefill QueryKind = iota
	AskDecode
)

// DecodeOSL is the output length of every decode query: the step that
// produces the second token.
const DecodeOSL = 2

// Query is what an outside provider of durations is asked, in whole numbers
// (engine notes §8.6). Equal queries have equal answers, whatever led to them.
//
// For AskPrefill: how long Batch prompts take that compute ISL tokens each
// on top of Prefix tokens each. OSL is 0.
//
// For AskDecode: how long one step takes of Batch sequences with ISL tokens
// each, the mean rounded down. Prefix is 0, OSL is DecodeOSL.
type Query struct {
	Kind   QueryKind
	Batch  int // 1 or more
	ISL    int // tokens
	Prefix int // tokens
	OSL    int // tokens
}

func prefillQuery(count, computed, prefix int) Query {
	return Query{Kind: AskPrefill, Batch: count, ISL: computed, Prefix: prefix}
}

func decodeQuery(batch, sumLen int) Query {
	return Query{Kind: AskDecode, Batch: batch, ISL: sumLen / batch, OSL: DecodeOSL}
}

// Cache keeps the answers of an outside provider under the exact arguments of
// the question, before rounding and speed-up ratios, and drops none.
//
// What a pass does never depends on how long it takes. So a scheduler computes
// the pass as a whole and asks Model.End for its end afterwards. If that is
// Unknown, Model.Ask has the question: the engine stops there with status
// NeedTiming and hands it out; the host asks its provider, calls Store, and
// the engine asks for the same end again. One pass may need two answers.
//
// A loop over decode passes stops before the pass for which DecodeStep.Ms is
// Unknown. Looking up allocates nothing; Store may.
type Cache struct {
	slots []slot // a power of two; linear probing
	used  int
}

// slot is empty if batch is 0. Decode queries have no prefix and are marked
// in its place.
type slot struct {
	batch, isl, prefix int
	ms                 float64
}

const (
	decodeMark  = -DecodeOSL
	firstSlots  = 64
	fibonacci64 = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio: spreads a product's high bits
)

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{slots: make([]slot, firstSlots)} }

// Len is the number of answers kept.
func (c *Cache) Len() int { return c.used }

// key is a query as a slot holds it. It reports false for one that no model
// asks.
func key(q Query) (slot, bool) {
	s := slot{batch: q.Batch, isl: q.ISL, prefix: q.Prefix}
	valid := q.Batch > 0 && q.ISL >= 0 && q.Prefix >= 0
	switch q.Kind {
	case AskPrefill:
		valid = valid && q.OSL == 0
	case AskDecode:
		valid = valid && q.Prefix == 0 && q.OSL == DecodeOSL
		s.prefix = decodeMark
	default:
		valid = false
	}
	return s, valid
}

// find is the place of a key: its slot, or the empty one where it belongs.
func (c *Cache) find(k slot) int {
	h := uint64(k.batch)
	h = h*fibonacci64 ^ uint64(k.isl)
	h = h*fibonacci64 ^ uint64(k.prefix)
	h *= fibonacci64
	mask := len(c.slots) - 1
	i := int(h>>32) & mask
	for {
		s := &c.slots[i]
		if s.batch == 0 || s.isl == k.isl && s.batch == k.batch && s.prefix == k.prefix {
			return i
		}
		i = (i + 1) & mask
	}
}

// Lookup returns the answer to a query in ms.
func (c *Cache) Lookup(q Query) (ms float64, ok bool) {
	k, valid := key(q)
	if !valid {
		return 0, false
	}
	s := &c.slots[c.find(k)]
	return s.ms, s.batch != 0
}

// Store keeps an answer in ms. It reports false, and keeps nothing, if the
// answer is not finite or the query is not one that a model asks. A negative
// answer counts as 0, a decode step takes 1 ms or more (engine notes §8.6). A
// second answer to the same query takes the place of the first.
func (c *Cache) Store(q Query, ms float64) bool {
	k, valid := key(q)
	if !valid || math.IsNaN(ms) || math.IsInf(ms, 0) {
		return false
	}
	i := c.find(k)
	if c.slots[i].batch == 0 {
		if c.used++; 2*c.used > len(c.slots) {
			c.grow()
			i = c.find(k)
		}
	}
	k.ms = ms
	c.slots[i] = k
	return true
}

func (c *Cache) grow() {
	old := c.slots
	c.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.batch != 0 {
			c.slots[c.find(s)] = s
		}
	}
}

// Share lets the model, and the copies that were made of it, find and miss
// answers in c, so that engines with the same provider need each answer once.
// Models of other kinds ignore it.
func (m *Model) Share(c *Cache) {
	if m.source != nil && m.source.cache != nil {
		m.source.cache = c
	}
}

// Ask returns what must be asked before End can tell, and whether there is
// anything to ask: about the prompts first, as the reference does.
func (m *Model) Ask(p Pass) (Query, bool) {
	switch {
	case m.source == nil || m.source.cache == nil:
	case m.Prefill(p.Prompts, p.ISL, p.Prefix) == Unknown:
		prefix := p.Prefix / p.Prompts
		return prefillQuery(p.Prompts, p.ISL/p.Prompts-prefix, prefix), true
	case m.Decode(p.Decodes, p.SumLen) == Unknown:
		return decodeQuery(p.Decodes, p.SumLen), true
	}
	return Query{}, false
}

package gen

import "fmt"

// prompt is a request being planned: its hash ids and its length in tokens.
type prompt struct {
	ids    []uint64
	tokens int
}

// ids hands out hash ids. A small alphabet makes equal ids meet under
// different parents; large numbers show that ids are names, not indices.
type ids struct {
	r        *Rand
	next     uint64
	alphabet uint64
}

func newIDs(r *Rand) *ids {
	return &ids{
		r:        r,
		next:     pick(r, 0, 1000, 1<<32, 1<<63, r.Uint64()),
		alphabet: pick[uint64](r, 0, 0, 2, 5),
	}
}

func (n *ids) fresh() uint64 {
	if n.alphabet > 0 && n.r.Chance(0.7) {
		return uint64(n.r.Intn(int(n.alphabet)))
	}
	n.next++
	return n.next
}

// trace plans the rows: prompts that share prefixes, sessions whose turns
// grow, times, output lengths and ids.
func (p *casePlan) trace() []Row {
	r := p.r
	count := pick(r, r.Between(1, 4), r.Between(3, 15), r.Between(10, 40))
	names := newIDs(r)
	var plans []prompt
	var rows []Row
	var last map[string]int // the session's latest row
	if p.sessions {
		last = map[string]int{}
	}
	clock := pick(r, 0.0, 0, 100, -50)
	if p.capped && !r.Chance(0.05) { // a capped run refuses negative starts
		clock = max(0, clock)
	}
	gap := pick(r, 0, 1, 5, 20, 20, 60)
	for range count {
		if !p.burst || r.Chance(0.3) {
			clock += float64(r.Between(0, 2*gap))
		}
		row := Row{}
		session, earlier := p.session(last)
		var plan prompt
		switch {
		case earlier >= 0 && r.Chance(0.8):
			plan = p.grow(plans[earlier], names)
		case p.replies && len(plans) > 0 && r.Chance(0.5):
			plan = p.grow(plans[r.Intn(len(plans))], names)
		default:
			plan = p.prompt(plans, names)
		}
		if session != "" {
			row.SessionID = &session
			last[session] = len(rows)
		}
		if earlier >= 0 {
			p.later(&row, clock, rows[earlier].Timestamp)
		} else {
			p.start(&row, clock)
		}
		p.lengths(&row, plan)
		plans, rows = append(plans, plan), append(rows, row)
	}
	if !p.sessions && r.Chance(0.3) {
		shuffle(r, rows)
	}
	if p.replies {
		p.spell(rows)
	}
	return rows
}

// session chooses the row's session ("" for none) and the index of that
// session's latest row (-1 for none).
func (p *casePlan) session(last map[string]int) (string, int) {
	if last == nil || p.r.Chance(0.15) {
		return "", -1
	}
	name := fmt.Sprintf("s%d", p.r.Intn(6))
	if row, ok := last[name]; ok {
		return name, row
	}
	return name, -1
}

// maxPrompt is the longest prompt a case asks for, in tokens.
func (p *casePlan) maxPrompt() int {
	limit := min(p.pool*2/3, 400)
	if p.doomed || p.r.Chance(0.03) {
		limit = min(p.pool+2*p.blockSize, 600)
	}
	return max(1, limit)
}

// prompt plans a new prompt: a copy or a prefix of an earlier one, or nothing,
// and then ids of its own.
func (p *casePlan) prompt(earlier []prompt, names *ids) prompt {
	r := p.r
	tokens := r.Between(1, p.maxPrompt())
	var path []uint64
	if len(earlier) > 0 && r.Chance(0.65) {
		old := earlier[r.Intn(len(earlier))]
		if r.Chance(0.25) {
			return old
		}
		path = append(path, old.ids[:r.Between(0, len(old.ids))]...)
		if r.Chance(0.3) {
			tokens = max(1, min(tokens, len(path)*p.traceSize))
		}
	}
	if r.Chance(0.3) { // a prompt that ends with a block
		size := pick(r, p.blockSize, p.traceSize)
		tokens = max(size, tokens/size*size)
	}
	return p.fill(path, tokens, names)
}

// grow plans the next turn after an earlier prompt.
func (p *casePlan) grow(old prompt, names *ids) prompt {
	more := p.r.Between(0, max(1, p.maxPrompt()/4))
	if p.replies {
		more = p.r.Between(p.blockSize, 4*p.blockSize)
	}
	tokens := min(old.tokens+more, max(old.tokens, p.maxPrompt()))
	path := old.ids
	if !p.replies && p.r.Chance(0.3) { // the last, partial block is another one now
		path = path[:len(path)-1]
	}
	return p.fill(append([]uint64(nil), path...), tokens, names)
}

// fill cuts or lengthens the path to cover the tokens, sometimes with an id
// too many.
func (p *casePlan) fill(path []uint64, tokens int, names *ids) prompt {
	need := (tokens + p.traceSize - 1) / p.traceSize
	if p.r.Chance(0.08) {
		need += p.r.Between(1, 2)
	}
	for len(path) < need {
		path = append(path, names.fresh())
	}
	return prompt{ids: path[:need:need], tokens: tokens}
}

// start sets a first turn's time. A capped run does not need one.
func (p *casePlan) start(row *Row, clock float64) {
	if p.capped && p.r.Chance(0.3) {
		return
	}
	if p.r.Chance(0.05) {
		row.CreatedTime = &clock
	} else {
		row.Timestamp = p.jitter(clock)
	}
}

// later sets a later turn's delay, its timestamp, both or neither. Without a
// delay the timestamp counts from the session's previous one, so there must
// be one and it must not be later.
func (p *casePlan) later(row *Row, clock float64, previous *float64) {
	r := p.r
	way := r.Intn(4)
	if way < 2 {
		delay := ptr(pick(r, 0, 1, 5, 30.5, float64(r.Between(0, 200))))
		if r.Chance(0.3) {
			row.DelayMs = delay
		} else {
			row.Delay = delay
		}
	}
	if previous != nil && (way == 2 || (way == 1 && r.Chance(0.5))) {
		row.Timestamp = ptr(max(*p.jitter(clock), *previous))
	}
}

// jitter moves a time by some sixteenths of a millisecond now and then.
func (p *casePlan) jitter(clock float64) *float64 {
	if p.r.Chance(0.1) {
		clock += float64(p.r.Between(0, 15)) / 16
	}
	return &clock
}

// lengths sets input, output and the keys that must not matter.
func (p *casePlan) lengths(row *Row, plan prompt) {
	r := p.r
	row.HashIDs = plan.ids
	capacity := len(plan.ids) * p.traceSize
	input := plan.tokens
	switch {
	case r.Chance(0.05) && (p.doomed || capacity <= p.pool*2/3):
		input = capacity // the length is left out
	case r.Chance(0.05):
		row.InputTokens = ptr(int64(input))
	default:
		row.InputLength = ptr(int64(input))
	}
	room := p.pool + 1 - input
	if p.doomed && r.Chance(0.3) {
		room += p.r.Between(0, 2*p.blockSize)
	}
	output := pick(r, 0, 1, 1, 2, r.Between(1, 10), r.Between(1, 10), r.Between(5, 60), r.Between(20, 150))
	if p.replies && r.Chance(0.6) {
		output = r.Between(p.blockSize, 3*p.blockSize)
	}
	output = max(0, min(output, room))
	if r.Chance(0.05) {
		row.OutputTokens = ptr(int64(output))
	} else {
		row.OutputLength = ptr(int64(output))
	}
	if r.Chance(0.1) {
		row.OutputTokenIDs = make([]uint32, output)
		for i := range row.OutputTokenIDs {
			row.OutputTokenIDs[i] = uint32(r.Intn(3))
		}
	}
	if r.Chance(0.05) {
		row.RequestID = ptr(fmt.Sprintf("r%d", r.Intn(1000)))
	}
	if r.Chance(0.05) {
		row.Priority, row.StrictPriority = ptr(int32(r.Between(-3, 3))), ptr(uint32(r.Intn(3)))
	}
	if r.Chance(0.03) {
		row.Note = ptr("ignored")
	}
	row.BlankBefore = r.Chance(0.03)
}

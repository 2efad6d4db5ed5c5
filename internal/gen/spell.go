package gen

import "slices"

// spell gives some rows planned output ids that continue their own prompt the
// way another row's prompt goes on, so blocks a request generated can be hit
// by a later prompt.
func (p *casePlan) spell(rows []Row) {
	number := numbers(rows)
	for i := range rows {
		row := &rows[i]
		input, output := row.input(p.traceSize), row.output()
		if output == 0 || input == 0 || !p.r.Chance(0.7) {
			continue
		}
		follow := p.follower(rows, i+1, row.HashIDs[:(input+p.traceSize-1)/p.traceSize])
		if follow == nil {
			continue
		}
		row.OutputTokenIDs = make([]uint32, output)
		for k := range row.OutputTokenIDs {
			at := (input + k) / p.traceSize
			if at < len(follow) {
				row.OutputTokenIDs[k] = number[follow[at]]
			} else {
				row.OutputTokenIDs[k] = uint32(p.r.Intn(len(number)))
			}
		}
	}
}

// follower returns the ids of the first row, from row number from on and round
// to the start, whose prompt begins with path and goes on; nil if there is
// none.
func (p *casePlan) follower(rows []Row, from int, path []uint64) []uint64 {
	for i := range rows {
		ids := rows[(i+from)%len(rows)].HashIDs
		if len(ids) > len(path) && slices.Equal(ids[:len(path)], path) {
			return ids
		}
	}
	return nil
}

// echo makes every prompt a beginning of one song and every reply its
// continuation: requests that run together fill blocks with equal content,
// behind prompts and behind each other's replies, and hit blocks of which one
// copy is idle and another is not. The pool is tiny, because that takes
// preemptions. It has a stream of its own.
func (p *casePlan) echo(r *Rand, c *ReplayCase) {
	p.blockSize = r.Between(2, 3)
	blocks := r.Between(4, 9)
	p.pool = blocks * p.blockSize
	e := c.Engine()
	e["block_size"], e["num_gpu_blocks"] = p.blockSize, blocks
	for _, key := range []string{"enable_prefix_caching", "max_num_seqs", "max_model_len"} {
		delete(e, key)
	}
	delete(c.Kwargs, "num_workers")
	p.traceSize = pick(r, 1, 1, 1, 2, 3)
	c.Kwargs["trace_block_size"] = p.traceSize
	c.Rows = c.Rows[:min(len(c.Rows), r.Between(2, 8))]
	song := make([]uint64, (2*p.pool+4*p.blockSize)/p.traceSize+1)
	for i := range song {
		song[i] = uint64(r.Intn(3))
	}
	clock := 0.0
	for i := range c.Rows {
		c.Rows[i] = Row{Timestamp: ptr(clock)}
		row := &c.Rows[i]
		if r.Chance(0.5) {
			clock += float64(r.Between(0, 25))
		}
		input := r.Between(1, p.pool*3/4)
		row.HashIDs = slices.Clone(song[:(input+p.traceSize-1)/p.traceSize])
		if r.Chance(0.15) {
			row.HashIDs[len(row.HashIDs)-1] = 9
		}
		row.InputLength = ptr(int64(input))
		row.OutputLength = ptr(int64(r.Between(0, min(p.pool+1-input, 3*p.blockSize+2))))
	}
	number := numbers(c.Rows)
	for i := range c.Rows {
		row := &c.Rows[i]
		row.OutputTokenIDs = make([]uint32, row.output())
		for k := range row.OutputTokenIDs {
			id := song[(row.input(p.traceSize)+k)/p.traceSize]
			if n, ok := number[id]; ok {
				row.OutputTokenIDs[k] = n
			} else {
				row.OutputTokenIDs[k] = uint32(len(number)) + uint32(id)
			}
		}
	}
}

// numbers are the tokens behind the hash ids of a trace: their order of first
// appearance (replay notes §3.1).
func numbers(rows []Row) map[uint64]uint32 {
	number := map[uint64]uint32{}
	for i := range rows {
		for _, id := range rows[i].HashIDs {
			if _, ok := number[id]; !ok {
				number[id] = uint32(len(number))
			}
		}
	}
	return number
}

// input is the row's prompt length in tokens under either name, or all of its
// blocks when neither is given.
func (row *Row) input(traceSize int) int {
	switch {
	case row.InputLength != nil:
		return int(*row.InputLength)
	case row.InputTokens != nil:
		return int(*row.InputTokens)
	}
	return len(row.HashIDs) * traceSize
}

// output is the requested output length in tokens under either name.
func (row *Row) output() int {
	switch {
	case row.OutputLength != nil:
		return int(*row.OutputLength)
	case row.OutputTokens != nil:
		return int(*row.OutputTokens)
	}
	return 0
}

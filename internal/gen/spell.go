package gen

import "slices"

// spell gives some rows planned output ids that continue their own prompt the
// way another row's prompt goes on, so blocks a request generated can be hit
// by a later prompt. A hash id's tokens are its number in order of first
// appearance in the file (replay notes §3.1).
func (p *casePlan) spell(rows []Row) {
	number := map[uint64]uint32{}
	for i := range rows {
		for _, id := range rows[i].HashIDs {
			if _, ok := number[id]; !ok {
				number[id] = uint32(len(number))
			}
		}
	}
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

// echo makes most rows repeat one of the first prompts and all rows say the
// same: requests that run together fill blocks with equal content, behind
// prompts and behind each other's replies. It has a stream of its own.
func (p *casePlan) echo(r *Rand, rows []Row) {
	song := make([]uint32, r.Between(1, 2*p.blockSize))
	for k := range song {
		song[k] = uint32(r.Intn(2))
	}
	first := r.Between(1, 3)
	for i := range rows {
		row := &rows[i]
		if i >= first && r.Chance(0.7) {
			model := &rows[r.Intn(first)]
			row.HashIDs, row.InputLength, row.InputTokens = model.HashIDs, model.InputLength, model.InputTokens
		}
		output := min(max(row.output(), r.Between(0, 3*p.blockSize)), p.pool+1-row.input(p.traceSize))
		output = max(output, 0)
		row.OutputLength, row.OutputTokens = ptr(int64(output)), nil
		row.OutputTokenIDs = make([]uint32, output)
		for k := range row.OutputTokenIDs {
			row.OutputTokenIDs[k] = song[k%len(song)]
		}
	}
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

package timing

import "github.com/dryserve/dryserve/core/config"

// place is a point of an axis: between the points at and at+1, share of the
// way. Beyond the axis's end share is above 1, before its start it is 0.
type place struct {
	at    int
	share float64
}

func locate(axis []float64, x float64, from int32) place {
	if x <= axis[0] {
		return place{}
	}
	i := interval(axis, x, from)
	return place{i, (x - axis[i]) / (axis[i+1] - axis[i])}
}

// inside is the nearest place on the axis.
func (p place) inside() place {
	return place{p.at, min(p.share, 1)}
}

// mix is a at share 0 and b at share 1, both exactly.
func mix(a, b, share float64) float64 {
	return float64(a*(1-share)) + float64(b*share)
}

// prefillOfGrid is multilinear between the grid's points and exact at them.
// Before the start of an axis the value is that at the start. Beyond its end
// the last interval goes on as a straight line, but never below the value at
// the nearest place of the grid.
func prefillOfGrid(g *config.GridTable, count, computed, prefix int) float64 {
	b := locate(g.PrefillBatch, float64(count), 0)
	i := locate(g.PrefillISL, float64(computed), 0)
	p := locate(g.PrefillPrefix, float64(prefix), 0)
	ms := prefillAt(g, b.inside(), i.inside(), p.inside())
	if b.share > 1 || i.share > 1 || p.share > 1 {
		ms = atLeast(prefillAt(g, b, i, p), ms)
	}
	return ms
}

func prefillAt(g *config.GridTable, b, i, p place) float64 {
	rows, cols := len(g.PrefillISL), len(g.PrefillPrefix)
	low := g.PrefillMs[(b.at*rows+i.at)*cols+p.at:]
	high := low[rows*cols:]
	return mix(
		mix(mix(low[0], low[1], p.share), mix(low[cols], low[cols+1], p.share), i.share),
		mix(mix(high[0], high[1], p.share), mix(high[cols], high[cols+1], p.share), i.share),
		b.share)
}

// decodeOfGrid is the same over the number of sequences and their mean
// context, whole tokens.
func decodeOfGrid(g *config.GridTable, batch, sumLen int, h *hint) float64 {
	b := locate(g.DecodeBatch, float64(batch), h.row)
	c := locate(g.DecodeContext, float64(sumLen/batch), h.col)
	h.row, h.col = int32(b.at), int32(c.at)
	ms := decodeAt(g, b.inside(), c.inside())
	if b.share > 1 || c.share > 1 {
		ms = atLeast(decodeAt(g, b, c), ms)
	}
	return ms
}

func decodeAt(g *config.GridTable, b, c place) float64 {
	cols := len(g.DecodeContext)
	low := g.DecodeMs[b.at*cols+c.at:]
	high := low[cols:]
	return mix(mix(low[0], low[1], c.share), mix(high[0], high[1], c.share), b.share)
}

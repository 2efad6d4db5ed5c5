package frame

import "github.com/dryserve/dryserve/core/replay"

// push and note append a value to a column. They are functions of their own
// since there are very many of these calls.
//
//go:noinline
func push(column *[]int32, n int32) { *column = append(*column, n) }

//go:noinline
func note(column *[]float64, x float64) { *column = append(*column, x) }

// oneIf is 1 or 0.
func oneIf(is bool) int32 {
	if is {
		return 1
	}
	return 0
}

// even reports whether all columns of a table have as many rows as the first
// one, and how many.
func even(fields []Field) (rows int, ok bool) {
	for i := range fields {
		n := 0
		switch p := fields[i].Var.(type) {
		case *[]int32:
			n = len(*p)
		case *[]float64:
			n = len(*p)
		}
		if i == 0 {
			rows = n
		} else if n != rows {
			return 0, false
		}
	}
	return rows, true
}

// RouteColumns are what the KV router said of requests, a row each. Routed is
// 0 where it has said nothing.
type RouteColumns struct {
	Routed, Waited, OverlapBlocks, BestBlocks []int32
	EnteredMs, ReleasedMs                     []float64
}

// Fields lists the columns.
func (c *RouteColumns) Fields() []Field {
	return []Field{
		{Name: "routed", Var: &c.Routed}, {Name: "waited", Var: &c.Waited},
		{Name: "overlap_blocks", Var: &c.OverlapBlocks}, {Name: "best_blocks", Var: &c.BestBlocks},
		{Name: "entered_ms", Var: &c.EnteredMs}, {Name: "released_ms", Var: &c.ReleasedMs},
	}
}

// Add appends a row.
func (c *RouteColumns) Add(r replay.Route, routed bool) {
	push(&c.Routed, oneIf(routed))
	push(&c.Waited, oneIf(r.Waited))
	push(&c.OverlapBlocks, r.OverlapBlocks)
	push(&c.BestBlocks, r.BestBlocks)
	note(&c.EnteredMs, r.EnteredMs)
	note(&c.ReleasedMs, r.ReleasedMs)
}

// Row is a row; the columns belong together.
func (c *RouteColumns) Row(i int) (r replay.Route, routed bool) {
	return replay.Route{
		Waited: c.Waited[i] != 0, EnteredMs: c.EnteredMs[i], ReleasedMs: c.ReleasedMs[i],
		OverlapBlocks: c.OverlapBlocks[i], BestBlocks: c.BestBlocks[i],
	}, c.Routed[i] != 0
}

// Rows is how many rows there are; false: the columns do not belong together.
func (c *RouteColumns) Rows() (int, bool) { return even(c.Fields()) }

// HandoffColumns are what is known of requests in two pools besides their
// records, in the order of these.
type HandoffColumns struct {
	PrefillScheduler, DecodeScheduler, DecodeFirst, Routed, PrefillAdmits, DecodeReused []int32

	PrefillAdmitMs, HeldMs, ReservedMs, ActivatedMs, DecodeAdmitMs, ReleasedMs []float64

	PrefillRoute, DecodeRoute RouteColumns // without Routed
}

// Fields lists the columns.
func (c *HandoffColumns) Fields() []Field {
	fields := []Field{
		{Name: "prefill_scheduler", Var: &c.PrefillScheduler}, {Name: "decode_scheduler", Var: &c.DecodeScheduler},
		{Name: "decode_first", Var: &c.DecodeFirst}, {Name: "routed", Var: &c.Routed},
		{Name: "prefill_admits", Var: &c.PrefillAdmits}, {Name: "decode_reused", Var: &c.DecodeReused},
		{Name: "prefill_admit_ms", Var: &c.PrefillAdmitMs}, {Name: "held_ms", Var: &c.HeldMs}, {Name: "reserved_ms", Var: &c.ReservedMs},
		{Name: "activated_ms", Var: &c.ActivatedMs}, {Name: "decode_admit_ms", Var: &c.DecodeAdmitMs}, {Name: "source_released_ms", Var: &c.ReleasedMs},
	}
	fields = append(fields, below("prefill_route.", c.PrefillRoute.Fields()[1:])...)
	return append(fields, below("decode_route.", c.DecodeRoute.Fields()[1:])...)
}

// Add appends a row.
func (c *HandoffColumns) Add(h *replay.Handoff) {
	push(&c.PrefillScheduler, h.PrefillScheduler)
	push(&c.DecodeScheduler, h.DecodeScheduler)
	push(&c.DecodeFirst, oneIf(h.DecodeFirst))
	push(&c.Routed, oneIf(h.Routed))
	push(&c.PrefillAdmits, h.PrefillAdmits)
	push(&c.DecodeReused, h.DecodeReused)
	note(&c.PrefillAdmitMs, h.PrefillAdmitMs)
	note(&c.HeldMs, h.HeldMs)
	note(&c.ReservedMs, h.ReservedMs)
	note(&c.ActivatedMs, h.ActivatedMs)
	note(&c.DecodeAdmitMs, h.DecodeAdmitMs)
	note(&c.ReleasedMs, h.ReleasedMs)
	c.PrefillRoute.Add(h.PrefillRoute, h.Routed)
	c.DecodeRoute.Add(h.DecodeRoute, h.Routed)
}

// Rows appends the columns' rows; false: they do not belong together.
func (c *HandoffColumns) Rows(to []replay.Handoff) ([]replay.Handoff, bool) {
	n, ok := even(c.Fields())
	if !ok {
		return to, false
	}
	c.PrefillRoute.Routed, c.DecodeRoute.Routed = c.Routed, c.Routed
	for i := range n {
		h := replay.Handoff{
			PrefillScheduler: c.PrefillScheduler[i], DecodeScheduler: c.DecodeScheduler[i], DecodeFirst: c.DecodeFirst[i] != 0, Routed: c.Routed[i] != 0,
			PrefillAdmits: c.PrefillAdmits[i], DecodeReused: c.DecodeReused[i],
			PrefillAdmitMs: c.PrefillAdmitMs[i], HeldMs: c.HeldMs[i], ReservedMs: c.ReservedMs[i],
			ActivatedMs: c.ActivatedMs[i], DecodeAdmitMs: c.DecodeAdmitMs[i], ReleasedMs: c.ReleasedMs[i],
		}
		h.PrefillRoute, _ = c.PrefillRoute.Row(i)
		h.DecodeRoute, _ = c.DecodeRoute.Row(i)
		to = append(to, h)
	}
	return to, true
}

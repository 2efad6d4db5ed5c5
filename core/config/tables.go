package config

// Codes of tables.
const (
	NoTable     Code = 64 + iota // the kind of timing needs a table and has none
	TooFew                       // an axis with fewer than two points
	NotRising                    // an axis value at or below the one before it
	WrongLength                  // not as many values as the axes have points
)

// Fields of tables.
const (
	FieldProfile Field = 128 + iota // the table as a whole
	FieldProfilePrefillISL
	FieldProfilePrefillTTFT
	FieldProfileDecodeActiveKV
	FieldProfileDecodeContext
	FieldProfileDecodeITL
	FieldGrid // the table as a whole
	FieldGridPrefillBatch
	FieldGridPrefillISL
	FieldGridPrefillPrefix
	FieldGridPrefillMs
	FieldGridDecodeBatch
	FieldGridDecodeContext
	FieldGridDecodeMs
)

// ProfileTable is a profile as the reference's NPZ files hold it: time to
// first token over the tokens a pass computes, and time between tokens over
// the tokens in the KV pool and the mean context (engine notes §8.5).
//
// Axes rise and have two points or more. Values may be negative: look-up has
// a floor.
type ProfileTable struct {
	PrefillISL           []float64 // tokens
	PrefillTTFTMs        []float64 // as long as PrefillISL
	DecodeActiveKVTokens []float64 // tokens
	DecodeContextLength  []float64 // tokens
	DecodeITLMs          []float64 // [active KV][context], row by row
}

// GridTable holds durations predicted for a model on a GPU: of a prefill over
// how many prompts, new tokens per prompt and tokens per prompt that were
// there before, of a decode step over how many sequences and their mean
// context.
//
// Axes rise, start at 0 or above and have two points or more. Durations are
// not negative.
type GridTable struct {
	PrefillBatch  []float64
	PrefillISL    []float64 // new tokens per prompt
	PrefillPrefix []float64 // tokens per prompt
	PrefillMs     []float64 // [batch][ISL][prefix], row by row
	DecodeBatch   []float64
	DecodeContext []float64 // tokens per sequence
	DecodeMs      []float64 // [batch][context], row by row
}

// TableFault is a Fault in a table. Index is the place of the value at fault,
// counted over the whole array row by row; it means nothing for NoTable,
// TooFew and WrongLength.
type TableFault struct {
	Fault
	Index int
}

// Check returns the first fault of the table, a missing one included: axes
// first, each before the values over it.
func (p *ProfileTable) Check() TableFault {
	if p == nil {
		return TableFault{Fault{NoTable, FieldProfile}, 0}
	}
	if f := checkAxis(FieldProfilePrefillISL, p.PrefillISL); !f.OK() {
		return f
	}
	if f := checkValues(FieldProfilePrefillTTFT, p.PrefillTTFTMs, len(p.PrefillISL)); !f.OK() {
		return f
	}
	if f := checkAxis(FieldProfileDecodeActiveKV, p.DecodeActiveKVTokens); !f.OK() {
		return f
	}
	if f := checkAxis(FieldProfileDecodeContext, p.DecodeContextLength); !f.OK() {
		return f
	}
	return checkValues(FieldProfileDecodeITL, p.DecodeITLMs, len(p.DecodeActiveKVTokens)*len(p.DecodeContextLength))
}

// Check returns the first fault of the table, a missing one included: axes
// first, each before the values over it.
func (g *GridTable) Check() TableFault {
	if g == nil {
		return TableFault{Fault{NoTable, FieldGrid}, 0}
	}
	axes := [...]struct {
		field Field
		axis  []float64
	}{
		{FieldGridPrefillBatch, g.PrefillBatch},
		{FieldGridPrefillISL, g.PrefillISL},
		{FieldGridPrefillPrefix, g.PrefillPrefix},
		{FieldGridDecodeBatch, g.DecodeBatch},
		{FieldGridDecodeContext, g.DecodeContext},
	}
	for _, a := range axes {
		if f := checkAxis(a.field, a.axis); !f.OK() {
			return f
		}
		if a.axis[0] < 0 {
			return TableFault{Fault{NegativeFloat, a.field}, 0}
		}
	}
	if f := checkDurations(FieldGridPrefillMs, g.PrefillMs, len(g.PrefillBatch)*len(g.PrefillISL)*len(g.PrefillPrefix)); !f.OK() {
		return f
	}
	return checkDurations(FieldGridDecodeMs, g.DecodeMs, len(g.DecodeBatch)*len(g.DecodeContext))
}

func checkAxis(field Field, points []float64) TableFault {
	if len(points) < 2 {
		return TableFault{Fault{TooFew, field}, 0}
	}
	if f := checkValues(field, points, len(points)); !f.OK() {
		return f
	}
	for i := 1; i < len(points); i++ {
		if points[i] <= points[i-1] {
			return TableFault{Fault{NotRising, field}, i}
		}
	}
	return TableFault{}
}

func checkValues(field Field, v []float64, want int) TableFault {
	if len(v) != want {
		return TableFault{Fault{WrongLength, field}, 0}
	}
	for i, x := range v {
		if !finite(x) {
			return TableFault{Fault{NotFinite, field}, i}
		}
	}
	return TableFault{}
}

func checkDurations(field Field, v []float64, want int) TableFault {
	if f := checkValues(field, v, want); !f.OK() {
		return f
	}
	for i, x := range v {
		if x < 0 {
			return TableFault{Fault{NegativeFloat, field}, i}
		}
	}
	return TableFault{}
}

// Package trace reads Mooncake trace rows (JSON lines) from bytes.
//
// It owns the grammar of one row: strict JSON, the row's fields, their types
// and ranges, and the cutting of a byte stream into lines. It does not know
// files, compression or sentences (host/native/tracefile does), and nothing of
// what rows mean together (core/workload does). What is accepted and which
// value it has follow the reference's release 1.6.1: replay notes §3.1.
//
// Where it parts from the reference: a row must be an object (the reference
// also takes an array of the fields in a fixed order), and an input_length or
// output_length of 2^63 or more is refused here instead of later.
//
// Invariants:
//   - whatever Line accepts, encoding/json accepts too, with the same values
//     but for floats (see number.go).
//   - after warm-up a row costs no allocation.
//   - nesting costs one bit per level and no stack.
package trace

// Row is one Mooncake row. Byte slices and slices alias the line and the
// parser's buffers and are valid until the next row.
type Row struct {
	RequestID []byte // nil: absent
	SessionID []byte // nil: absent

	InputLength  int64 // tokens, -1: absent
	OutputLength int64 // tokens
	HashIDs      []uint64
	OutputIDs    []uint32
	HasOutputIDs bool

	TimestampMs  float64 // finite
	HasTimestamp bool
	DelayMs      float64 // finite
	HasDelay     bool

	Priority       int32
	StrictPriority uint32
	PolicyClass    []byte // nil: absent
}

// Package trace reads trace rows from bytes.
package trace

// Row is one Mooncake row. Byte slices and slices alias the parser's buffers
// and are valid until the next row.
type Row struct {
	RequestID []byte // nil: absent
	SessionID []byte // nil: absent

	InputLength  int64 // -1: absent
	OutputLength int64
	HashIDs      []uint64
	OutputIDs    []uint32
	HasOutputIDs bool

	TimestampMs  float64
	HasTimestamp bool
	DelayMs      float64
	HasDelay     bool

	Priority       int32
	StrictPriority uint32
	PolicyClass    []byte // nil: absent
}

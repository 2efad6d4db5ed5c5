package timeline

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of Perfetto's messages (perfetto/trace/*.proto).
const (
	tracePacket = 1

	packetTimestamp  = 8
	packetSequence   = 10
	packetEvent      = 11
	packetInterned   = 12
	packetFlags      = 13
	packetDescriptor = 60

	trackUUID     = 1
	trackName     = 2
	trackProcess  = 3
	trackThread   = 4
	trackParent   = 5
	trackCounter  = 8
	processPID    = 1
	processName   = 6
	threadPID     = 1
	threadTID     = 2
	threadName    = 5
	counterUnit   = 6 // by name
	internedEvent = 2
	internedNote  = 3
	internedIID   = 1
	internedName  = 2

	eventNote    = 4
	eventType    = 9
	eventNameIID = 10
	eventTrack   = 11
	eventName    = 23
	eventCounter = 30
	noteNameIID  = 1
	noteInt      = 4
	noteText     = 6
)

// Kinds of track events.
const (
	sliceBegin = 1
	sliceEnd   = 2
	counter    = 4
)

// Sequence flags.
const (
	stateCleared = 1
	needsState   = 2
)

// message is a protobuf message under way.
type message []byte

func (m *message) number(field protowire.Number, n int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(n))
}

func (m *message) text(field protowire.Number, s string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), s)
}

func (m *message) message(field protowire.Number, o message) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), o)
}

// ns is a time in whole nanoseconds, the unit of a trace.
func ns(ms float64) int64 { return int64(math.Round(ms * 1e6)) }

package trace

// AgenticVersion is the version of agentic Mooncake that is read.
const AgenticVersion = 2

// AgenticHeader is the first line of an agentic Mooncake file (replay notes
// §3.4). Texts alias the line and the parser's buffers.
type AgenticHeader struct {
	BlockSize    int64
	SourceFormat []byte
	SourceDigest []byte
}

// Trigger says when a dependency is fulfilled.
type Trigger uint8

// Relation says what a dependency is for; only Spawn may go with Dispatch.
type Relation uint8

// The words of dependencies, in the order the reference sorts them.
const (
	Dispatch Trigger = iota
	Completion

	Sequence Relation = iota - 2
	Spawn
	Join
	Barrier
)

// String is the trigger's word.
func (t Trigger) String() string {
	if t == Dispatch {
		return "dispatch"
	}
	return "completion"
}

// String is the relation's word.
func (r Relation) String() string {
	switch r {
	case Sequence:
		return "sequence"
	case Spawn:
		return "spawn"
	case Join:
		return "join"
	}
	return "replay_barrier"
}

// Dependency is one request another one waits for.
type Dependency struct {
	RequestID []byte
	Trigger   Trigger
	Relation  Relation
	DelayMs   float64
}

// AgenticRow is one request of an agentic Mooncake file. Slices alias the line
// and the parser's buffers and are valid until the next row.
type AgenticRow struct {
	RequestID, PlayID, SessionID, Model []byte

	PlayOrdinal    int64 // -1: absent
	InputLength    int64 // tokens, -1: absent
	OutputLength   int64 // tokens, -1: absent
	OutputIDs      []uint32
	HasOutputIDs   bool
	HashIDs        []uint64 // nil: absent
	NotBeforeMs    float64
	APITimeMs      float64
	HasAPITime     bool
	Priority       int32
	StrictPriority uint32
	PolicyClass    []byte // nil: absent
	Dependencies   []Dependency
}

// AgenticHeader reads the header line.
func (p *Parser) AgenticHeader(line []byte, h *AgenticHeader) Fault {
	*h = AgenticHeader{BlockSize: -1}
	var schema, scope int8 = -1, -1
	version := int64(-1)
	ok := p.whole0(line, headerField, func(i int, f Field) int {
		switch f {
		case Schema:
			return p.word(line, i, f, &schema, "dynamo.agentic_mooncake")
		case Version:
			return p.version(line, i, &version)
		case BlockSize:
			return p.whole(line, i, f, 1<<63-1, &h.BlockSize)
		case HashScope:
			return p.word(line, i, f, &scope, "local")
		}
		return p.inner(line, i, f, sourceField, func(i int, f Field) (end int) {
			text := &h.SourceFormat
			if f == SourceDigest {
				text = &h.SourceDigest
			}
			*text, end = p.str(line, i, f)
			return end
		})
	})
	if !ok {
		return p.fault
	}
	for _, need := range []struct {
		field  Field
		absent bool
	}{
		{Schema, schema < 0}, {Version, version < 0}, {BlockSize, h.BlockSize < 0}, {HashScope, scope < 0},
		{SourceFormat, h.SourceFormat == nil}, {SourceDigest, h.SourceDigest == nil},
	} {
		if need.absent {
			return Fault{Code: Missing, Field: need.field}
		}
	}
	return Fault{}
}

// version reads the version, which must be the one that is read.
func (p *Parser) version(line []byte, i int, v *int64) int {
	end := p.whole(line, i, Version, 1<<32-1, v)
	if end >= 0 && *v != AgenticVersion {
		return p.stop(WrongWord, Version, i, end)
	}
	return end
}

// AgenticRow reads a line after the header.
func (p *Parser) AgenticRow(line []byte, r *AgenticRow) Fault {
	*r = AgenticRow{PlayOrdinal: -1, InputLength: -1, OutputLength: -1}
	p.deps = p.deps[:0]
	notBefore := false
	ok := p.whole0(line, agenticField, func(i int, f Field) int {
		notBefore = notBefore || f == NotBefore
		return p.agenticValue(line, i, f, r)
	})
	if !ok {
		return p.fault
	}
	r.Dependencies = p.deps
	for _, need := range []struct {
		field  Field
		absent bool
	}{
		{RequestID, r.RequestID == nil}, {PlayID, r.PlayID == nil}, {SessionID, r.SessionID == nil}, {Model, r.Model == nil},
		{InputLength, r.InputLength < 0}, {OutputLength, r.OutputLength < 0}, {HashIDs, r.HashIDs == nil}, {NotBefore, !notBefore},
	} {
		if need.absent {
			return Fault{Code: Missing, Field: need.field}
		}
	}
	return Fault{}
}

// agenticValue reads the value of a field into the row.
func (p *Parser) agenticValue(line []byte, i int, f Field, r *AgenticRow) (end int) {
	switch f {
	case RequestID:
		r.RequestID, end = p.str(line, i, f)
		return end
	case PlayID:
		r.PlayID, end = p.str(line, i, f)
		return end
	case SessionID:
		r.SessionID, end = p.str(line, i, f)
		return end
	case Model:
		r.Model, end = p.str(line, i, f)
		return end
	case NotBefore:
		return p.float(line, i, f, &r.NotBeforeMs)
	case Dependencies:
		return p.items(line, i, f, func(i int) int { return p.dependency(line, i) })
	}
	if end, yes := p.null(line, i, f); yes {
		return end
	}
	switch f {
	case PlayOrdinal:
		return p.whole(line, i, f, 1<<63-1, &r.PlayOrdinal)
	case APITime:
		r.HasAPITime = true
		return p.float(line, i, f, &r.APITimeMs)
	}
	return p.common(line, i, f, &Row{}, r)
}

// common reads a field that Mooncake rows have, too.
func (p *Parser) common(line []byte, i int, f Field, row *Row, r *AgenticRow) int {
	row.InputLength, row.OutputLength = -1, -1
	end := p.value(line, i, f, row)
	switch f {
	case InputLength:
		r.InputLength = row.InputLength
	case OutputLength:
		r.OutputLength = row.OutputLength
	case HashIDs:
		r.HashIDs = row.HashIDs
	case OutputIDs:
		r.OutputIDs, r.HasOutputIDs = row.OutputIDs, row.HasOutputIDs
	case Priority:
		r.Priority = row.Priority
	case StrictPriority:
		r.StrictPriority = row.StrictPriority
	case PolicyClass:
		r.PolicyClass = row.PolicyClass
	}
	return end
}

// dependency reads one dependency.
func (p *Parser) dependency(line []byte, i int) int {
	d := Dependency{}
	var trigger, relation int8 = -1, -1
	hasDelay := false
	end := p.inner(line, i, Dependencies, dependencyField, func(i int, f Field) (end int) {
		switch f {
		case DependsOn:
			d.RequestID, end = p.str(line, i, f)
			return end
		case DependsTrigger:
			return p.trigger(line, i, f, &trigger)
		case DependsRelation:
			return p.relation(line, i, f, &relation)
		}
		hasDelay = true
		return p.float(line, i, f, &d.DelayMs)
	})
	if end < 0 {
		return -1
	}
	for _, need := range []struct {
		field  Field
		absent bool
	}{
		{DependsOn, d.RequestID == nil}, {DependsTrigger, trigger < 0}, {DependsRelation, relation < 0}, {DependsDelay, !hasDelay},
	} {
		if need.absent {
			return p.stop(Missing, need.field, i, end)
		}
	}
	d.Trigger, d.Relation = Trigger(trigger), Relation(relation)
	p.deps = append(p.deps, d)
	return end
}

// trigger and relation read the words of a dependency.
func (p *Parser) trigger(line []byte, i int, f Field, at *int8) int {
	return p.word(line, i, f, at, Dispatch.String(), Completion.String())
}

func (p *Parser) relation(line []byte, i int, f Field, at *int8) int {
	return p.word(line, i, f, at, Sequence.String(), Spawn.String(), Join.String(), Barrier.String())
}

func headerField(key []byte) Field {
	switch string(key) {
	case "schema":
		return Schema
	case "version":
		return Version
	case "block_size":
		return BlockSize
	case "hash_id_scope":
		return HashScope
	case "source":
		return Source
	}
	return NoField
}

func sourceField(key []byte) Field {
	switch string(key) {
	case "format":
		return SourceFormat
	case "digest":
		return SourceDigest
	}
	return NoField
}

func agenticField(key []byte) Field {
	switch string(key) {
	case "play_id":
		return PlayID
	case "source_play_ordinal":
		return PlayOrdinal
	case "model":
		return Model
	case "not_before_ms":
		return NotBefore
	case "recorded_api_time_ms":
		return APITime
	case "dependencies":
		return Dependencies
	}
	if f := fieldOf(key); f != Timestamp && f != Delay {
		return f
	}
	return NoField
}

func dependencyField(key []byte) Field {
	switch string(key) {
	case "request_id":
		return DependsOn
	case "trigger":
		return DependsTrigger
	case "relation":
		return DependsRelation
	case "delay_ms":
		return DependsDelay
	}
	return NoField
}

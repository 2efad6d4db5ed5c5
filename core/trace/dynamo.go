package trace

// Event is what a record of a Dynamo request trace tells of.
type Event uint8

// Ignored is a record that says nothing of when requests ran. A tool that
// failed has ended, too.
const (
	Ignored Event = iota
	RequestEnd
	ToolEnd
)

// DynamoRecord is one line of a Dynamo request trace (replay notes §3.6).
// Texts and slices alias the line and the parser's buffers and are valid until
// the next record; nil is absent.
type DynamoRecord struct {
	Event       Event
	EventTimeMs int64 // Unix time

	HasContext    bool
	Session       []byte
	ParentSession []byte

	HasRequest   bool
	RequestID    []byte
	Model        []byte
	OutputTokens int64 // -1: absent
	ReceivedMs   int64 // Unix time, -1: absent
	TotalMs      float64
	HasTotal     bool
	BlockSize    int64 // tokens per hash
	InputLength  int64 // tokens
	Hashes       []uint64
	Dependencies []Dependency // without delays

	HasTool   bool
	ToolCall  []byte
	ToolClass []byte
	HasClaude bool
	Source    []byte
	Consumer  []byte
	Child     []byte
	Mode      []byte
}

// Dynamo reads a line. The record may stand inside another object under
// "event". What is no object is ignored, as is a record of another event.
func (p *Parser) Dynamo(line []byte, r *DynamoRecord) Fault {
	*r = DynamoRecord{EventTimeMs: -1, OutputTokens: -1, ReceivedMs: -1, BlockSize: -1, InputLength: -1}
	p.fault, p.text, p.deps = Fault{}, p.text[:0], p.deps[:0]
	at := space(line, 0)
	if at == len(line) {
		return Fault{Code: CutOff, Start: at, End: at}
	}
	end := p.skip(line, at)
	if end < 0 {
		return p.fault
	}
	if rest := space(line, end); rest < len(line) {
		return Fault{Code: Trailing, Start: rest, End: len(line)}
	}
	if line[at] != '{' {
		return Fault{}
	}
	inner, event := p.look(line, at)
	if inner >= 0 {
		if at = inner; line[at] != '{' {
			p.wrong(line, at, Wrapper)
			return p.fault
		}
		_, event = p.look(line, at)
	}
	if !p.event(line, event, r) || r.Event == Ignored {
		return p.fault
	}
	schema := int8(-1)
	if p.members(line, at, dynamoField, func(i int, f Field) int { return p.dynamoValue(line, i, f, r, &schema) }) < 0 {
		return p.fault
	}
	return absent(schema < 0, RecordSchema, r.EventTimeMs < 0, EventTime)
}

// absent is the fault of the first field that is not there.
func absent(a bool, first Field, b bool, second Field) Fault {
	switch {
	case a:
		return Fault{Code: Missing, Field: first}
	case b:
		return Fault{Code: Missing, Field: second}
	}
	return Fault{}
}

// look finds where the values of "event" and "event_type" begin in the object
// at i, -1: nowhere. The line has been checked.
func (p *Parser) look(line []byte, i int) (inner, event int) {
	inner, event = -1, -1
	p.Keys(line[i:], func(key, value []byte) bool {
		switch string(key) {
		case "event":
			inner = len(line) - len(value)
		case "event_type":
			event = len(line) - len(value)
		}
		return true
	})
	return inner, event
}

// event reads what the record tells of.
func (p *Parser) event(line []byte, i int, r *DynamoRecord) bool {
	if i < 0 {
		return p.fail(Missing, EventType, 0, 0)
	}
	var word int8
	if p.word(line, i, EventType, &word, "request_end", "tool_end", "tool_error", "request_payload", "tool_start") < 0 {
		p.fault.Key = i
		return false
	}
	r.Event = [...]Event{RequestEnd, ToolEnd, ToolEnd, Ignored, Ignored}[word]
	return true
}

// dynamoValue reads the value of a field of a record.
func (p *Parser) dynamoValue(line []byte, i int, f Field, r *DynamoRecord, schema *int8) int {
	switch f {
	case RecordSchema:
		return p.word(line, i, f, schema, "dynamo.request.trace.v1")
	case EventType:
		return p.skip(line, i)
	case EventTime:
		return p.whole(line, i, f, 1<<63-1, &r.EventTimeMs)
	}
	if end, yes := p.null(line, i, f); yes {
		return end
	}
	switch f {
	case AgentContext:
		r.HasContext = true
		return p.texts(line, i, f, contextField, r, ContextSession)
	case Request:
		r.HasRequest = true
		return p.request(line, i, r)
	}
	r.HasTool = true
	return p.texts(line, i, f, toolField, r, ToolCall, ToolClass)
}

// texts reads an object of texts, some of which must be there.
func (p *Parser) texts(line []byte, i int, f Field, find func([]byte) Field, r *DynamoRecord, needs ...Field) int {
	end := p.inner(line, i, f, find, func(i int, f Field) int { return p.textOf(line, i, f, r) })
	for _, f := range needs {
		if end >= 0 && *r.text(f) == nil {
			return p.stop(Missing, f, i, end)
		}
	}
	return end
}

// textOf reads a field of agent_context, tool or tool.claude.
func (p *Parser) textOf(line []byte, i int, f Field, r *DynamoRecord) int {
	switch f {
	case ContextParent, ToolConsumer, ToolChild, ToolClaude, ToolStarted, ToolEnded:
		if end, yes := p.null(line, i, f); yes {
			return end
		}
	}
	switch f {
	case ToolStarted, ToolEnded:
		var ignored int64
		return p.whole(line, i, f, 1<<63-1, &ignored)
	case ToolClaude:
		r.HasClaude = true
		return p.texts(line, i, f, claudeField, r, ToolSource, ToolMode)
	}
	text, end := p.str(line, i, f)
	*r.text(f) = text
	return end
}

// text is where the text of a field is kept.
func (r *DynamoRecord) text(f Field) *[]byte {
	switch f {
	case ContextSession:
		return &r.Session
	case ContextParent:
		return &r.ParentSession
	case ToolCall:
		return &r.ToolCall
	case ToolClass:
		return &r.ToolClass
	case ToolSource:
		return &r.Source
	case ToolConsumer:
		return &r.Consumer
	case ToolChild:
		return &r.Child
	}
	return &r.Mode
}

// request reads the object of a request.
func (p *Parser) request(line []byte, i int, r *DynamoRecord) int {
	replay := false
	end := p.inner(line, i, Request, requestField, func(i int, f Field) (end int) {
		switch f {
		case RequestName:
			r.RequestID, end = p.str(line, i, f)
			return end
		case Replay:
			replay = true
			return p.replay(line, i, r)
		}
		if end, yes := p.null(line, i, f); yes {
			return end
		}
		switch f {
		case OutputTokens:
			return p.whole(line, i, f, 1<<63-1, &r.OutputTokens)
		case ReceivedTime:
			return p.whole(line, i, f, 1<<63-1, &r.ReceivedMs)
		case TotalTime:
			r.HasTotal = true
			return p.float(line, i, f, &r.TotalMs)
		}
		r.Model, end = p.str(line, i, f)
		return end
	})
	switch {
	case end < 0:
	case r.RequestID == nil:
		return p.stop(Missing, RequestName, i, end)
	case !replay:
		return p.stop(Missing, Replay, i, end)
	}
	return end
}

// replay reads what a request's prompt is made of.
func (p *Parser) replay(line []byte, i int, r *DynamoRecord) int {
	end := p.inner(line, i, Replay, replayField, func(i int, f Field) int {
		switch f {
		case ReplayBlockSize:
			return p.whole(line, i, f, 1<<63-1, &r.BlockSize)
		case ReplayInput:
			return p.whole(line, i, f, 1<<63-1, &r.InputLength)
		case ReplayHashes:
			p.hash, i = p.list(line, i, f, 1<<64-1, p.hash[:0])
			r.Hashes = present(p.hash)
			return i
		}
		return p.items(line, i, f, func(i int) int { return p.replayDependency(line, i) })
	})
	r.Dependencies = p.deps
	switch {
	case end < 0:
	case r.BlockSize < 0:
		return p.stop(Missing, ReplayBlockSize, i, end)
	case r.InputLength < 0:
		return p.stop(Missing, ReplayInput, i, end)
	case r.Hashes == nil:
		return p.stop(Missing, ReplayHashes, i, end)
	}
	return end
}

// replayDependency reads a dependency, whose delay follows from the times of
// both requests.
func (p *Parser) replayDependency(line []byte, i int) int {
	var d Dependency
	var trigger, relation int8 = -1, -1
	end := p.inner(line, i, ReplayDeps, replayDepField, func(i int, f Field) (end int) {
		switch f {
		case ReplayDepTrigger:
			return p.trigger(line, i, f, &trigger)
		case ReplayDepRelation:
			return p.relation(line, i, f, &relation)
		}
		d.RequestID, end = p.str(line, i, f)
		return end
	})
	switch {
	case end < 0:
		return -1
	case d.RequestID == nil:
		return p.stop(Missing, ReplayDepRequest, i, end)
	case trigger < 0:
		return p.stop(Missing, ReplayDepTrigger, i, end)
	case relation < 0:
		return p.stop(Missing, ReplayDepRelation, i, end)
	}
	d.Trigger, d.Relation = Trigger(trigger), Relation(relation)
	p.deps = append(p.deps, d)
	return end
}

func dynamoField(key []byte) Field {
	switch string(key) {
	case "schema":
		return RecordSchema
	case "event_type":
		return EventType
	case "event_time_unix_ms":
		return EventTime
	case "agent_context":
		return AgentContext
	case "request":
		return Request
	case "tool":
		return Tool
	}
	return NoField
}

func contextField(key []byte) Field {
	switch string(key) {
	case "session_id":
		return ContextSession
	case "parent_session_id":
		return ContextParent
	}
	return NoField
}

func requestField(key []byte) Field {
	switch string(key) {
	case "request_id":
		return RequestName
	case "output_tokens":
		return OutputTokens
	case "request_received_ms":
		return ReceivedTime
	case "total_time_ms":
		return TotalTime
	case "model":
		return RequestModel
	case "replay":
		return Replay
	}
	return NoField
}

func replayField(key []byte) Field {
	switch string(key) {
	case "trace_block_size":
		return ReplayBlockSize
	case "input_length":
		return ReplayInput
	case "input_sequence_hashes":
		return ReplayHashes
	case "dependencies":
		return ReplayDeps
	}
	return NoField
}

func replayDepField(key []byte) Field {
	switch string(key) {
	case "request_id":
		return ReplayDepRequest
	case "trigger":
		return ReplayDepTrigger
	case "relation":
		return ReplayDepRelation
	}
	return NoField
}

func toolField(key []byte) Field {
	switch string(key) {
	case "tool_call_id":
		return ToolCall
	case "tool_class":
		return ToolClass
	case "started_at_unix_ms":
		return ToolStarted
	case "ended_at_unix_ms":
		return ToolEnded
	case "claude":
		return ToolClaude
	}
	return NoField
}

func claudeField(key []byte) Field {
	switch string(key) {
	case "source_request_id":
		return ToolSource
	case "consumer_request_id":
		return ToolConsumer
	case "child_session_id":
		return ToolChild
	case "execution_mode":
		return ToolMode
	}
	return NoField
}

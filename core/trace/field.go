package trace

// Field names a field of a row of any format; a field with two names is one
// Field.
type Field uint8

// NoField is a key the row does not know.
const NoField Field = 0

// The fields of Mooncake rows, some of which other formats have as well.
const (
	RequestID Field = iota + 1
	SessionID
	InputLength
	OutputLength
	OutputIDs
	HashIDs
	Timestamp
	Delay
	Priority
	StrictPriority
	PolicyClass
)

// The fields of agentic Mooncake: the header's, then the rows'.
const (
	Schema Field = iota + 12
	Version
	BlockSize
	HashScope
	Source
	SourceFormat
	SourceDigest
	PlayID
	PlayOrdinal
	Model
	NotBefore
	APITime
	Dependencies
	DependsOn
	DependsTrigger
	DependsRelation
	DependsDelay
)

// The fields of Applied Compute rows.
const (
	NumTurns Field = iota + 40
	PromptLength
	Responses
	ToolOutputs
	ToolLatencies
	FinalResponse
)

// The fields of Dynamo request traces.
const (
	Wrapper Field = iota + 60
	RecordSchema
	EventType
	EventTime
	AgentContext
	ContextSession
	ContextParent
	Request
	RequestName
	OutputTokens
	ReceivedTime
	TotalTime
	RequestModel
	Replay
	ReplayBlockSize
	ReplayInput
	ReplayHashes
	ReplayDeps
	ReplayDepRequest
	ReplayDepTrigger
	ReplayDepRelation
	Tool
	ToolCall
	ToolClass
	ToolStarted
	ToolEnded
	ToolClaude
	ToolSource
	ToolConsumer
	ToolChild
	ToolMode
)

// The fields of Weka traces; those of an entry stand below requests.
const (
	WekaID Field = iota + 100
	WekaModels
	WekaRequests
	EntryType
	EntryTime
	EntryModel
	EntryInput
	EntryOutput
	EntryHashes
	EntryAPITime
	EntryAgent
	EntryAgentType
	EntryStatus
	EntryDuration
	EntryRequests
)

// The columns of tables of requests.
const (
	AzureTime Field = iota + 120
	AzureInput
	AzureOutput
	BurstTime
	BurstSession
	BurstElapsed
	BurstInput
	BurstOutput
)

// fieldNames has the names of every field, as the reference writes them.
var fieldNames = [...]struct{ name, alias string }{
	RequestID: {"request_id", ""}, SessionID: {"session_id", ""},
	InputLength: {"input_length", "input_tokens"}, OutputLength: {"output_length", "output_tokens"},
	OutputIDs: {"output_token_ids", ""}, HashIDs: {"hash_ids", ""},
	Timestamp: {"timestamp", "created_time"}, Delay: {"delay", "delay_ms"},
	Priority: {"priority", ""}, StrictPriority: {"strict_priority", ""}, PolicyClass: {"policy_class", ""},

	Schema: {"schema", ""}, Version: {"version", ""}, BlockSize: {"block_size", ""}, HashScope: {"hash_id_scope", ""},
	Source: {"source", ""}, SourceFormat: {"source.format", ""}, SourceDigest: {"source.digest", ""},
	PlayID: {"play_id", ""}, PlayOrdinal: {"source_play_ordinal", ""}, Model: {"model", ""},
	NotBefore: {"not_before_ms", ""}, APITime: {"recorded_api_time_ms", ""}, Dependencies: {"dependencies", ""},
	DependsOn: {"dependencies.request_id", ""}, DependsTrigger: {"dependencies.trigger", ""},
	DependsRelation: {"dependencies.relation", ""}, DependsDelay: {"dependencies.delay_ms", ""},

	NumTurns: {"num_turns", ""}, PromptLength: {"input_prompt_length", ""}, Responses: {"assistant_response_length", ""},
	ToolOutputs: {"tool_call_output_length", ""}, ToolLatencies: {"tool_call_latency", ""},
	FinalResponse: {"final_assistant_response_length", ""},

	Wrapper: {"event", ""}, RecordSchema: {"schema", ""}, EventType: {"event_type", ""}, EventTime: {"event_time_unix_ms", ""}, AgentContext: {"agent_context", ""},
	ContextSession: {"agent_context.session_id", ""}, ContextParent: {"agent_context.parent_session_id", ""},
	Request: {"request", ""}, RequestName: {"request.request_id", ""}, OutputTokens: {"request.output_tokens", ""},
	ReceivedTime: {"request.request_received_ms", ""}, TotalTime: {"request.total_time_ms", ""}, RequestModel: {"request.model", ""},
	Replay: {"request.replay", ""}, ReplayBlockSize: {"request.replay.trace_block_size", ""}, ReplayInput: {"request.replay.input_length", ""},
	ReplayHashes: {"request.replay.input_sequence_hashes", ""}, ReplayDeps: {"request.replay.dependencies", ""},
	ReplayDepRequest: {"request.replay.dependencies.request_id", ""}, ReplayDepTrigger: {"request.replay.dependencies.trigger", ""},
	ReplayDepRelation: {"request.replay.dependencies.relation", ""},
	Tool:              {"tool", ""}, ToolCall: {"tool.tool_call_id", ""}, ToolClass: {"tool.tool_class", ""}, ToolStarted: {"tool.started_at_unix_ms", ""},
	ToolEnded: {"tool.ended_at_unix_ms", ""}, ToolClaude: {"tool.claude", ""}, ToolSource: {"tool.claude.source_request_id", ""},
	ToolConsumer: {"tool.claude.consumer_request_id", ""}, ToolChild: {"tool.claude.child_session_id", ""}, ToolMode: {"tool.claude.execution_mode", ""},

	WekaID: {"id", ""}, WekaModels: {"models", ""}, WekaRequests: {"requests", ""}, EntryType: {"requests.type", ""},
	EntryTime: {"requests.t", ""}, EntryModel: {"requests.model", ""}, EntryInput: {"requests.in", ""}, EntryOutput: {"requests.out", ""},
	EntryHashes: {"requests.hash_ids", ""}, EntryAPITime: {"requests.api_time", ""}, EntryAgent: {"requests.agent_id", ""},
	EntryAgentType: {"requests.subagent_type", ""}, EntryStatus: {"requests.status", ""}, EntryDuration: {"requests.duration_ms", ""},
	EntryRequests: {"requests.requests", ""},

	AzureTime: {"TIMESTAMP", ""}, AzureInput: {"ContextTokens", ""}, AzureOutput: {"GeneratedTokens", ""},
	BurstTime: {"Timestamp", ""}, BurstSession: {"Session ID", ""}, BurstElapsed: {"Elapsed time", ""},
	BurstInput: {"Request tokens", ""}, BurstOutput: {"Response tokens", ""},
}

// Name is the field's first name, as the reference writes it. The field of an
// inner object stands behind a point.
func (f Field) Name() string { return fieldNames[f].name }

// Alias is the field's other name, "" where it has none.
func (f Field) Alias() string { return fieldNames[f].alias }

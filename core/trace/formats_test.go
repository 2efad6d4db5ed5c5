package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

const (
	header = `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"f","digest":"d"}}`
	node   = `{"request_id":"a","play_id":"P","session_id":"S","model":"m","input_length":192,"output_length":5,"hash_ids":[1,2,3],"not_before_ms":100.5,"dependencies":[]}`
	talk   = `{"num_turns":1,"input_prompt_length":9,"assistant_response_length":[2],"tool_call_output_length":[3],"tool_call_latency":[0.01],"final_assistant_response_length":4}`
)

// fault shows a fault as "code field start:end key".
func (f Fault) String() string {
	return fmt.Sprintf("%d %s %d:%d %d", f.Code, f.Field.Name(), f.Start, f.End, f.Key)
}

func edit(text, old, now string) string {
	if !strings.Contains(text, old) {
		panic(old)
	}
	return strings.Replace(text, old, now, 1)
}

// dropped is the object without a key.
func dropped(text, key string) string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	delete(m, key)
	b, _ := json.Marshal(m)
	return string(b)
}

func TestAgenticHeader(t *testing.T) {
	var p Parser
	var h AgenticHeader
	for _, text := range []string{header, edit(header, "{", "{ \"x\" : [1, {}] ,"), edit(header, `"d"`, `"\u0064"`), edit(header, `"f",`, `"f","more":null,`)} {
		if f := p.AgenticHeader([]byte(text), &h); f.Code != OK || h.BlockSize != 64 || string(h.SourceFormat) != "f" || string(h.SourceDigest) != "d" {
			t.Errorf("%s: %v %+v", text, f, h)
		}
	}
	for key, field := range map[string]Field{"schema": Schema, "version": Version, "block_size": BlockSize, "hash_id_scope": HashScope, "source": SourceFormat} {
		if f := p.AgenticHeader([]byte(dropped(header, key)), &h); f.Code != Missing || f.Field != field {
			t.Errorf("without %s: %v", key, f)
		}
	}
	for _, c := range []struct {
		text  string
		code  Code
		field Field
	}{
		{edit(header, "dynamo.agentic_mooncake", "x"), WrongWord, Schema},
		{edit(header, ":2", ":3"), WrongWord, Version},
		{edit(header, ":2", ":2.0"), WrongType, Version},
		{edit(header, ":64", ":null"), WrongType, BlockSize},
		{edit(header, "local", "global"), WrongWord, HashScope},
		{edit(header, `{"format":"f","digest":"d"}`, `[]`), WrongType, Source},
		{edit(header, `"f"`, `7`), WrongType, SourceFormat},
		{edit(header, `,"digest":"d"`, ``), Missing, SourceDigest},
		{edit(header, `"d"`, `"d","digest":"d"`), Duplicate, SourceDigest},
		{edit(header, `"version"`, `"block_size":1,"version"`), Duplicate, BlockSize},
		{header + "x", Trailing, NoField},
		{header[:40], CutOff, NoField},
		{"[]", NotObject, NoField},
	} {
		if f := p.AgenticHeader([]byte(c.text), &h); f.Code != c.code || f.Field != c.field {
			t.Errorf("%s: %v, want %d %s", c.text, f, c.code, c.field.Name())
		}
	}
}

func TestAgenticRow(t *testing.T) {
	var p Parser
	var r AgenticRow
	text := `{"request_id":"a\n","play_id":"P","session_id":"S","model":"m","input_tokens":192,"output_tokens":2,"hash_ids":[1,18446744073709551615],` +
		`"not_before_ms":1e2,"recorded_api_time_ms":5,"source_play_ordinal":3,"priority":-2,"strict_priority":7,"policy_class":"gold","output_token_ids":[4,5],` +
		`"timestamp":"ignored","dependencies":[{"request_id":"b","trigger":"dispatch","delay_ms":2.5,"relation":"spawn"},` +
		` {"relation":"replay_barrier","delay_ms":0,"trigger":"completion","x":1,"request_id":"c"} ]}`
	if f := p.AgenticRow([]byte(text), &r); f.Code != OK {
		t.Fatal(f)
	}
	want := `{a
 P S m 3 192 2 [4 5] true [1 18446744073709551615] 100 5 true -2 7 gold [{[98] dispatch spawn 2.5} {[99] completion replay_barrier 0}]}`
	got := fmt.Sprintf("{%s %s %s %s %d %d %d %d %v %d %v %v %v %d %d %s %v}", r.RequestID, r.PlayID, r.SessionID, r.Model, r.PlayOrdinal, r.InputLength, r.OutputLength,
		r.OutputIDs, r.HasOutputIDs, r.HashIDs, r.NotBeforeMs, r.APITimeMs, r.HasAPITime, r.Priority, r.StrictPriority, r.PolicyClass, r.Dependencies)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if f := p.AgenticRow([]byte(dropped(node, "dependencies")), &r); f.Code != OK || len(r.Dependencies) != 0 || r.PlayOrdinal != -1 || r.HasAPITime || r.HasOutputIDs {
		t.Errorf("%v %+v", f, r)
	}
	for _, key := range []string{"recorded_api_time_ms", "source_play_ordinal", "priority", "strict_priority", "policy_class", "output_token_ids"} {
		if f := p.AgenticRow([]byte(edit(node, "{", `{"`+key+`":null,`)), &r); f.Code != OK {
			t.Errorf("%s null: %v", key, f)
		}
	}
	for key, field := range map[string]Field{
		"request_id": RequestID, "play_id": PlayID, "session_id": SessionID, "model": Model, "input_length": InputLength,
		"output_length": OutputLength, "hash_ids": HashIDs, "not_before_ms": NotBefore,
	} {
		if f := p.AgenticRow([]byte(dropped(node, key)), &r); f.Code != Missing || f.Field != field {
			t.Errorf("without %s: %v", key, f)
		}
	}
	dep := func(text string) string { return edit(node, "[]", "["+text+"]") }
	for _, c := range []struct {
		text  string
		code  Code
		field Field
	}{
		{edit(node, `"m"`, `null`), WrongType, Model},
		{edit(node, `100.5`, `"1"`), WrongType, NotBefore},
		{edit(node, `100.5`, `1e999`), OutOfRange, NotBefore},
		{edit(node, `[]`, `{}`), WrongType, Dependencies},
		{edit(node, `[]`, `null`), WrongType, Dependencies},
		{dep("7"), WrongType, Dependencies},
		{dep(`{"request_id":"b","trigger":"x","delay_ms":0,"relation":"spawn"}`), WrongWord, DependsTrigger},
		{dep(`{"request_id":"b","trigger":"dispatch","delay_ms":0,"relation":"Spawn"}`), WrongWord, DependsRelation},
		{dep(`{"trigger":"dispatch","delay_ms":0,"relation":"spawn"}`), Missing, DependsOn},
		{dep(`{"request_id":"b","delay_ms":0,"relation":"spawn"}`), Missing, DependsTrigger},
		{dep(`{"request_id":"b","trigger":"dispatch","relation":"spawn"}`), Missing, DependsDelay},
		{dep(`{"request_id":"b","trigger":"dispatch","delay_ms":0}`), Missing, DependsRelation},
		{dep(`{"request_id":"b","request_id":"b"}`), Duplicate, DependsOn},
		{dep(`{"request_id":"b"`), WantCommaOrBrace, NoField},
		{dep(`{} {}`), Missing, DependsOn},
		{edit(node, `"m"`, `"m","input_tokens":1`), Duplicate, InputLength},
	} {
		if f := p.AgenticRow([]byte(c.text), &r); f.Code != c.code || f.Field != c.field {
			t.Errorf("%s: %v, want %d %s", c.text, f, c.code, c.field.Name())
		}
	}
}

func TestAppliedRow(t *testing.T) {
	var p Parser
	var r AppliedRow
	if f := p.AppliedRow([]byte(talk), &r); f.Code != OK || fmt.Sprint(r) != "{1 9 [2] [3] [0.01] 4}" {
		t.Errorf("%v %v", f, r)
	}
	empty := `{"num_turns":0,"input_prompt_length":1,"assistant_response_length":[],"tool_call_output_length":[ ],"tool_call_latency":[],"final_assistant_response_length":0,"x":1}`
	if f := p.AppliedRow([]byte(empty), &r); f.Code != OK || fmt.Sprint(r) != "{0 1 [] [] [] 0}" {
		t.Errorf("%v %v", f, r)
	}
	for key, field := range map[string]Field{
		"num_turns": NumTurns, "input_prompt_length": PromptLength, "assistant_response_length": Responses,
		"tool_call_output_length": ToolOutputs, "tool_call_latency": ToolLatencies, "final_assistant_response_length": FinalResponse,
	} {
		if f := p.AppliedRow([]byte(dropped(talk, key)), &r); f.Code != Missing || f.Field != field {
			t.Errorf("without %s: %v", key, f)
		}
		if f := p.AppliedRow([]byte(edit(talk, `"`+key+`":`, `"`+key+`":null,"y":`)), &r); f.Code != WrongType || f.Field != field {
			t.Errorf("%s null: %v", key, f)
		}
	}
}

func TestKeys(t *testing.T) {
	for text, want := range map[string]string{
		header:                                "schema version block_size hash_id_scope source",
		" \n{\n \"a\": [1,\n2],\"\\u0062\":1": "a b",
		`{"a":1,"b":{"c":`:                    "a b",
		`{"a":1 "b":2}`:                       "a",
		"[]":                                  "", "": "", "{": "", `{"a"`: "", "{}": "",
	} {
		var p Parser
		var keys []string
		p.Keys([]byte(text), func(key, value []byte) bool { keys = append(keys, string(key)); return true })
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var p Parser
	seen := 0
	p.Keys([]byte(header), func(key, value []byte) bool { seen++; return seen < 2 })
	if seen != 2 {
		t.Errorf("%d keys after a stop", seen)
	}
}

// checkFault wants a fault that lies in the line, and nothing accepted that
// encoding/json would not.
func checkFault(t *testing.T, line []byte, f Fault) {
	t.Helper()
	if f.Start < 0 || f.Start > f.End || f.End > len(line) || f.Key < 0 || f.Key > f.Start {
		t.Fatalf("%q: fault out of place: %v", line, f)
	}
	if f.Code == OK && !json.Valid(line) {
		t.Fatalf("%q was accepted", line)
	}
}

// FuzzFormats feeds lines to the parsers of all formats but Mooncake.
func FuzzFormats(f *testing.F) {
	for _, text := range []string{
		header, node, talk, ended, called, played, azure, burst, `{"event":` + ended + `}`, edit(node, "[]", `[{"request_id":"b","trigger":"dispatch","delay_ms":2.5,"relation":"spawn"},{}]`), `{"a":{"b":[`, "{}", "",
	} {
		f.Add([]byte(text))
	}
	var p Parser
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		var h AgenticHeader
		checkFault(t, line, p.AgenticHeader(line, &h))
		var r AgenticRow
		if f := p.AgenticRow(line, &r); f.Code == OK && (math.IsNaN(r.NotBeforeMs) || math.IsInf(r.NotBeforeMs, 0) || r.InputLength < 0) {
			t.Fatalf("%q: %+v", line, r)
		} else {
			checkFault(t, line, f)
		}
		var a AppliedRow
		checkFault(t, line, p.AppliedRow(line, &a))
		var d DynamoRecord
		checkFault(t, line, p.Dynamo(line, &d))
		var w WekaTrace
		if f := p.Weka(line, &w); f.Code == OK && (w.BlockSize < 0 || w.ID == nil || !within(w.Entries, len(w.Hashes))) {
			t.Fatalf("%q: %+v", line, w)
		} else {
			checkFault(t, line, f)
		}
		for _, table := range []Table{AzureTable, BurstTable} {
			checkTable(t, &p, table, line)
		}
		p.Columns(line, func(name []byte) bool { return true })
		p.Keys(line, func(key, value []byte) bool { return true })
		if !bytes.Equal(line, before) {
			t.Fatalf("%q: the line was changed", before)
		}
	})
}

const (
	ended = `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":110,"request":{"request_id":"a","output_tokens":2,"request_received_ms":100,` +
		`"total_time_ms":9.5,"model":"m","replay":{"trace_block_size":4,"input_length":7,"input_sequence_hashes":[5,18446744073709551615]}},"agent_context":{"session_id":"S","parent_session_id":"P"}}`
	called = `{"schema":"dynamo.request.trace.v1","event_type":"tool_error","event_time_unix_ms":7,"agent_context":{"session_id":"S"},"tool":{"tool_call_id":"t","tool_class":"agent",` +
		`"started_at_unix_ms":1,"ended_at_unix_ms":null,"claude":{"source_request_id":"a","consumer_request_id":"b","child_session_id":"C","execution_mode":"blocking"}}}`
)

func TestDynamo(t *testing.T) {
	var p Parser
	var r DynamoRecord
	show := func() string {
		return fmt.Sprintf("%d %d ctx %v %s<%s req %v %s %s %d %d %v %v bs %d in %d %d deps %v tool %v %s %s %v %s>%s %s %s", r.Event, r.EventTimeMs,
			r.HasContext, r.Session, r.ParentSession, r.HasRequest, r.RequestID, r.Model, r.OutputTokens, r.ReceivedMs, r.TotalMs, r.HasTotal,
			r.BlockSize, r.InputLength, r.Hashes, r.Dependencies, r.HasTool, r.ToolCall, r.ToolClass, r.HasClaude, r.Source, r.Consumer, r.Child, r.Mode)
	}
	const plain = "1 110 ctx true S<P req true a m 2 100 9.5 true bs 4 in 7 [5 18446744073709551615] deps [] tool false   false >  "
	const tool = "2 7 ctx true S< req false   -1 -1 0 false bs -1 in -1 [] deps [] tool true t agent true a>b C blocking"
	for _, c := range []struct{ text, want string }{
		{ended, plain}, {called, tool}, {edit(called, "tool_error", "tool_end"), tool},
		{`{"event":` + ended + `}`, plain}, {`{"event_type":"request_payload","x":1, "event" : ` + ended + `}`, plain},
		{edit(ended, `{"schema"`, `{"tool":null,"x":[{}],"schema"`), plain},
		{edit(ended, `"S","parent_session_id":"P"`, `"S","parent_session_id":null`), edit(plain, "S<P", "S<")},
		{edit(ended, `"request_received_ms":100`, `"request_received_ms":null`), edit(plain, " 100 ", " -1 ")},
		{edit(ended, `,"model":"m"`, ``), edit(plain, "a m", "a ")},
		{edit(ended, `"replay":{`, `"replay":{"dependencies":[{"request_id":"z","relation":"spawn","trigger":"dispatch","delay_ms":"x"}],`),
			edit(plain, "deps []", "deps [{[122] dispatch spawn 0}]")},
	} {
		if f := p.Dynamo([]byte(c.text), &r); f.Code != OK {
			t.Errorf("%s: %v", c.text, f)
		} else if got := show(); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
	for _, text := range []string{
		"[1]", "7", `"x"`, "null", "true", `{"event_type":"request_payload"}`, `{"event_type":"tool_start","schema":7}`, `{"event":{"event_type":"request_payload","request":5}}`,
		`{"event":{},"event":{"event_type":"tool_start"}}`,
	} {
		if f := p.Dynamo([]byte(text), &r); f.Code != OK || r.Event != Ignored {
			t.Errorf("%s: %v %+v", text, f, r)
		}
	}
	without := func(text, part string) string { return edit(text, part, "") }
	for _, c := range []struct {
		text  string
		code  Code
		field Field
	}{
		{"", CutOff, NoField}, {"{", CutOff, NoField}, {"x", WantValue, NoField}, {ended + "}", Trailing, NoField}, {"{}", Missing, EventType},
		{`{"event":[1]}`, WrongType, Wrapper}, {`{"event":null}`, WrongType, Wrapper}, {`{"event":{}}`, Missing, EventType},
		{edit(ended, "request_end", "other"), WrongWord, EventType}, {`{"event_type":5}`, WrongType, EventType},
		{without(ended, `"schema":"dynamo.request.trace.v1",`), Missing, RecordSchema}, {edit(ended, "trace.v1", "trace.v2"), WrongWord, RecordSchema},
		{without(ended, `"event_time_unix_ms":110,`), Missing, EventTime}, {edit(ended, ":110", ":1.5"), WrongType, EventTime}, {edit(ended, ":110", ":-1"), WrongType, EventTime},
		{without(ended, `"request_id":"a",`), Missing, RequestName}, {edit(ended, `"a"`, `1`), WrongType, RequestName},
		{edit(ended, `"request":{`, `"request":7,"x":{`), WrongType, Request},
		{edit(ended, `"replay":{`, `"x":{`), Missing, Replay}, {edit(ended, `"replay":{`, `"replay":null,"x":{`), WrongType, Replay},
		{without(ended, `"trace_block_size":4,`), Missing, ReplayBlockSize}, {without(ended, `"input_length":7,`), Missing, ReplayInput},
		{without(ended, `,"input_sequence_hashes":[5,18446744073709551615]`), Missing, ReplayHashes},
		{edit(ended, "[5,", "[5.0,"), WrongType, ReplayHashes}, {edit(ended, ":9.5", `:"9"`), WrongType, TotalTime},
		{edit(ended, `"model":"m"`, `"model":5`), WrongType, RequestModel}, {edit(ended, `_tokens":2`, `_tokens":-2`), WrongType, OutputTokens},
		{edit(ended, `"session_id":"S"`, `"x":1`), Missing, ContextSession},
		{edit(ended, `"replay":{`, `"replay":{"dependencies":null,`), WrongType, ReplayDeps},
		{edit(ended, `"replay":{`, `"replay":{"dependencies":[{"request_id":"z","relation":"spawn"}],`), Missing, ReplayDepTrigger},
		{edit(ended, `"replay":{`, `"replay":{"dependencies":[{"request_id":"z","trigger":"dispatch"}],`), Missing, ReplayDepRelation},
		{edit(ended, `"replay":{`, `"replay":{"dependencies":[{"trigger":"dispatch","relation":"spawn"}],`), Missing, ReplayDepRequest},
		{edit(ended, `"replay":{`, `"replay":{"dependencies":[{"trigger":"now"}],`), WrongWord, ReplayDepTrigger},
		{edit(ended, `{"schema"`, `{"tool":{},"schema"`), Missing, ToolCall},
		{without(called, `"tool_class":"agent",`), Missing, ToolClass}, {edit(called, `"started_at_unix_ms":1`, `"started_at_unix_ms":"x"`), WrongType, ToolStarted},
		{without(called, `"source_request_id":"a",`), Missing, ToolSource}, {without(called, `,"execution_mode":"blocking"`), Missing, ToolMode},
		{edit(called, `"C"`, `5`), WrongType, ToolChild},
		{edit(ended, `{"schema"`, `{"schema":"dynamo.request.trace.v1","schema"`), Duplicate, RecordSchema},
	} {
		if f := p.Dynamo([]byte(c.text), &r); f.Code != c.code || f.Field != c.field {
			t.Errorf("%s: %v, want %d %s", c.text, f, c.code, c.field.Name())
		}
	}
}

// within reports whether every entry has hashes of its own, in order.
func within(entries []WekaEntry, hashes int) bool {
	at := 0
	for _, e := range entries {
		if e.From < at || e.To < e.From || e.To > hashes || e.Subagent && (e.Nested || e.To > e.From) {
			return false
		}
		at = e.To
	}
	return at == hashes
}

const played = `{"id":"w","models":["m"],"block_size":4,"hash_id_scope":"local","requests":[` +
	`{"type":"n","t":0.5,"model":"m","in":8,"out":2,"hash_ids":[1,18446744073709551615],"api_time":0.25},` +
	`{"type":"subagent","t":1,"agent_id":"a","subagent_type":"x","status":"completed","duration_ms":40,"requests":[{"type":"s","t":0,"model":"m","in":4,"out":0}]}]}`

func TestWeka(t *testing.T) {
	var p Parser
	var r WekaTrace
	const want = "w [m] 4 [1 18446744073709551615]; 0.5 m 8>2 0:2 0.25 true; sub 1 a false 40 true; > 0 m 4>0 2:2 0 false"
	show := func() string {
		s := fmt.Sprintf("%s %s %d %v", r.ID, r.Models, r.BlockSize, r.Hashes)
		for _, e := range r.Entries {
			switch {
			case e.Subagent:
				s += fmt.Sprintf("; sub %v %s %v %v %v", e.TimeS, e.Agent, e.Background, e.DurationMs, e.HasDuration)
			case e.Nested:
				s += "; >"
				fallthrough
			default:
				s = strings.Replace(s+fmt.Sprintf("; %v %s %d>%d %d:%d %v %v", e.TimeS, e.Model, e.Input, e.Output, e.From, e.To, e.APITimeS, e.HasAPI), ">;", ">", 1)
			}
		}
		return s
	}
	for _, c := range []struct{ text, want string }{
		{played, want},
		{edit(played, `{"type":"n","t":0.5,`, ` { "x":[{"type":"subagent"}], "t":0.5, "type" : "n" ,`), want}, // the type may come late
		{edit(played, `"type":"subagent","t":1`, `"requests":[],"t":1,"type":"subagent"`), ""},
		{edit(played, `"api_time":0.25`, `"api_time":null,"agent_id":5,"requests":7`), edit(want, "0.25 true", "0 false")},
		{edit(played, `"duration_ms":40`, `"duration_ms":null,"model":7,"in":"x"`), edit(want, "40 true", "0 false")},
		{edit(played, `"duration_ms":40`, `"duration_ms":-9223372036854775808`), edit(want, "40 true", "-9223372036854775808 true")},
		{edit(played, "completed", "async_launched"), edit(want, "a false", "a true")},
		{edit(played, `"models":["m"],`, ``), edit(want, "[m]", "[]")},
		{edit(played, `"id":"w"`, `"id":"\u0077"`), want},
	} {
		f := p.Weka([]byte(c.text), &r)
		if c.want == "" {
			if f.Code != Duplicate || f.Field != EntryRequests {
				t.Errorf("%s: %v", c.text, f)
			}
		} else if f.Code != OK || show() != c.want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", c.text, f, show(), c.want)
		}
	}
	without := func(part string) string { return edit(played, part, "") }
	for _, c := range []struct {
		text         string
		code         Code
		field        Field
		outer, inner int32
	}{
		{"", CutOff, NoField, -1, -1}, {"[1]", NotObject, NoField, -1, -1}, {played + played, Trailing, NoField, -1, -1},
		{without(`"id":"w",`), Missing, WekaID, -1, -1}, {without(`"block_size":4,`), Missing, BlockSize, -1, -1},
		{without(`"hash_id_scope":"local",`), Missing, HashScope, -1, -1}, {edit(played, `"requests":[{"type":"n"`, `"x":[{"type":"n"`), Missing, WekaRequests, -1, -1},
		{edit(played, `"local"`, `"global"`), WrongWord, HashScope, -1, -1}, {edit(played, `["m"]`, `null`), WrongType, WekaModels, -1, -1},
		{edit(played, `["m"]`, `[5]`), WrongType, WekaModels, -1, -1}, {edit(played, `:4,`, `:4.0,`), WrongType, BlockSize, -1, -1},
		{edit(played, `"id":"w"`, `"id":"w","id":"w"`), Duplicate, WekaID, -1, -1},
		{edit(played, `:[{"type":"n"`, `:[7,{"type":"n"`), WrongType, WekaRequests, 0, -1},
		{edit(played, `"n"`, `"x"`), WrongWord, EntryType, 0, -1}, {edit(played, `"n"`, `null`), WrongType, EntryType, 0, -1},
		{without(`"type":"n",`), Missing, EntryType, 0, -1}, {without(`"t":0.5,`), Missing, EntryTime, 0, -1}, {without(`"model":"m",`), Missing, EntryModel, 0, -1},
		{without(`"in":8,`), Missing, EntryInput, 0, -1}, {without(`"out":2,`), Missing, EntryOutput, 0, -1},
		{edit(played, `0.5`, `1e999`), OutOfRange, EntryTime, 0, -1}, {edit(played, `:8,`, `:-8,`), WrongType, EntryInput, 0, -1},
		{edit(played, `[1,`, `[1.5,`), WrongType, EntryHashes, 0, -1}, {edit(played, `0.25`, `"x"`), WrongType, EntryAPITime, 0, -1},
		{edit(played, `[1,18446744073709551615]`, `null`), WrongType, EntryHashes, 0, -1},
		{without(`"agent_id":"a",`), Missing, EntryAgent, 1, -1}, {without(`"subagent_type":"x",`), Missing, EntryAgentType, 1, -1},
		{without(`"status":"completed",`), Missing, EntryStatus, 1, -1}, {edit(played, `completed`, `failed`), WrongWord, EntryStatus, 1, -1},
		{edit(played, `:40`, `:1.5`), WrongType, EntryDuration, 1, -1}, {edit(played, `:40`, `:9223372036854775808`), OutOfRange, EntryDuration, 1, -1},
		{edit(played, `40,"requests"`, `40,"y"`), Missing, EntryRequests, 1, -1}, {edit(played, `{"type":"s"`, `{"type":"subagent"`), WrongWord, EntryType, 1, 0},
		{edit(played, `{"type":"s"`, `7,{"type":"s"`), WrongType, EntryRequests, 1, 0}, {edit(played, `"in":4,`, ``), Missing, EntryInput, 1, 0},
		{edit(played, `"t":0,`, `"t":0,"t":0,`), Duplicate, EntryTime, 1, 0},
	} {
		if f := p.Weka([]byte(c.text), &r); f.Code != c.code || f.Field != c.field || c.outer >= 0 && (r.Outer != c.outer || r.Inner != c.inner) {
			t.Errorf("%s: %v in %d %d, want %d %s in %d %d", c.text, f, r.Outer, r.Inner, c.code, c.field.Name(), c.outer, c.inner)
		}
	}
}

const (
	azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,48,10\r"
	burst = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n100.5,s1,3,\"GPT \"\"4\"\"\",10,6,16,Conversation log"
)

// checkTable reads text as the header and as a row of a table, and what
// follows its first line as a row.
func checkTable(t *testing.T, p *Parser, table Table, text []byte) {
	t.Helper()
	header, rest, _ := bytes.Cut(text, []byte("\n"))
	columns, f := p.TableHeader(header, table)
	if f.Code != OK {
		if f.Start < 0 || f.Start > f.End || f.End > len(header) {
			t.Fatalf("%q: fault out of place: %v", header, f)
		}
		columns, _ = p.TableHeader([]byte("TIMESTAMP,ContextTokens,GeneratedTokens"), AzureTable)
	}
	for _, line := range [][]byte{text, rest} {
		var r TableRow
		f := p.TableRow(line, columns, &r)
		if f.Code != OK && (f.Start < 0 || f.Start > f.End || f.End > len(line)) {
			t.Fatalf("%q: fault out of place: %v", line, f)
		}
		if f.Code == OK && (r.Input < 0 || r.Output < 0 || r.TimeNs < -1e14 || !(r.TimeS >= 0 && r.ElapsedS >= 0) || math.IsInf(r.TimeS+r.ElapsedS, 0) && r.TimeS < 1e307 && r.ElapsedS < 1e307) {
			t.Fatalf("%q: %+v", line, r)
		}
	}
}

func TestTable(t *testing.T) {
	var p Parser
	var r TableRow
	header, line, _ := strings.Cut(azure, "\n")
	columns, f := p.TableHeader([]byte(header), AzureTable)
	if f.Code != OK || fmt.Sprint(columns) != fmt.Sprint([]Field{AzureTime, AzureInput, AzureOutput}) {
		t.Fatal(f, columns)
	}
	if f := p.TableRow([]byte(line), columns, &r); f.Code != OK || r.TimeNs != 1700158623979960000 || r.Input != 48 || r.Output != 10 {
		t.Errorf("%v %+v", f, r)
	}
	header, line, _ = strings.Cut(burst, "\n")
	columns, f = p.TableHeader([]byte(header), BurstTable)
	if f.Code != OK || len(columns) != 8 {
		t.Fatal(f, columns)
	}
	if f := p.TableRow([]byte(line), columns, &r); f.Code != OK || r.TimeS != 100.5 || r.Input != 10 || r.Output != 6 || string(r.Session) != "s1" || r.ElapsedS != 3 {
		t.Errorf("%v %+v", f, r)
	}
	if f := p.TableRow([]byte(strings.Replace(line, "s1,3", " , ", 1)), columns, &r); f.Code != OK || r.Session != nil || r.ElapsedS != 0 {
		t.Errorf("%v %+v", f, r)
	}
	text := []byte(line)
	if n := testing.AllocsPerRun(100, func() { p.TableRow(text, columns, &r) }); n > 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func TestClock(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01 00:00:00": 0, "1970-01-01 00:00:00.000000001": 1, "1970-03-01T00:00:00Z": 59 * 86400e9, "1972-03-01 00:00:00+00:00": 790 * 86400e9,
		"2000-02-29 12:00:00.5": 951825600500000000, "2100-03-01 00:00:00": 4107542400000000000, "2023-11-16 18:17:03.9799600": 1700158623979960000,
		"2024-05-10 00:00:00.009930+00:00": 1715299200009930000, "2024-05-10 01:30:00+01:30": 1715299200000000000, "2024-05-09 23:00:00-01:00": 1715299200000000000,
	} {
		if got, ok := clock([]byte(text)); !ok || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "2023", "2023-11-16", "2023-11-16 18:17", "2023-13-16 18:17:03", "2023-00-16 18:17:03", "2023-11-31 18:17:03", "2100-02-29 18:17:03", "2023-11-16 18:60:03",
		"2023-11-16 18:17:60", "2023-11-16d18:17:03", "2023/11/16 18:17:03", "2023-11-16 18:17:03 ", "2023-11-16 18:17:03.x", "2023-11-16 18:17:03+24:00", "2023-11-16 18:17:03+00:60",
		"2023-11-16 18:17:03+0:000", "2201-01-01 00:00:00", "dddd-dd-dd dd:dd:dd",
	} {
		if _, ok := clock([]byte(text)); ok {
			t.Errorf("%q was accepted", text)
		}
	}
}

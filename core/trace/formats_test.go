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
		header, node, talk, edit(node, "[]", `[{"request_id":"b","trigger":"dispatch","delay_ms":2.5,"relation":"spawn"},{}]`), `{"a":{"b":[`, "{}", "",
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
		p.Keys(line, func(key, value []byte) bool { return true })
		if !bytes.Equal(line, before) {
			t.Fatalf("%q: the line was changed", before)
		}
	})
}

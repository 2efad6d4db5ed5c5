package tracefile

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

const (
	alone = `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":110,"request":{"request_id":"a","output_tokens":2,"request_received_ms":100,` +
		`"total_time_ms":10,"replay":{"trace_block_size":4,"input_length":7,"input_sequence_hashes":[5,6]}}}`
	spoken = `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":110,"agent_context":{"session_id":"S"},"request":{"request_id":"a","output_tokens":2,` +
		`"request_received_ms":100,"total_time_ms":10,"replay":{"trace_block_size":4,"input_length":7,"input_sequence_hashes":[5,6]}}}`
	toolUsed = `{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":7,"agent_context":{"session_id":"S"},"tool":{"tool_call_id":"t","tool_class":"agent",` +
		`"claude":{"source_request_id":"a","execution_mode":"blocking"}}}`
)

var (
	records = Options{Format: Dynamo, TraceBlockSize: 512, ArrivalSpeedup: 1}
	agent   = Options{Format: Dynamo, TraceBlockSize: 512, ArrivalSpeedup: 1, ExecutionModel: "m"}
)

// A trace may be in several files, compressed or not, in any order.
func TestShards(t *testing.T) {
	second := edit(edit(alone, `"a"`, `"b"`), ":100,", ":130,")
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "1"), filepath.Join(dir, "2.gz"), filepath.Join(dir, "3")}
	writeAll(t, map[string][]byte{paths[0]: []byte("\n" + second + "\n"), paths[1]: gz(t, `{"event_type":"request_payload"}`+"\n"+alone), paths[2]: []byte("[1]\n")})
	o := records
	o.Format = Auto
	for _, order := range [][]string{paths, {paths[1], paths[0], paths[2]}} {
		loaded, err := Load(context.Background(), order, o)
		if err != nil {
			t.Fatal(err)
		}
		w := loaded.Workload
		if loaded.Format != Dynamo || len(w.Turns) != 2 || w.Sessions[0].StartMs != 0 || w.Sessions[1].StartMs != 30 || w.TraceBlockSize != 4 {
			t.Errorf("%+v", w)
		}
		if loaded.Info.Rows != 2 || loaded.Info.Lines != 5 {
			t.Errorf("%+v", loaded.Info)
		}
	}
	// The sentence names the file that is wrong.
	writeAll(t, map[string][]byte{paths[2]: []byte("\n\n" + edit(alone, ":4,", ":8,"))})
	_, err := Load(context.Background(), paths, o)
	if want := paths[2] + `:3: field "request.replay.trace_block_size": found 8, but 4 before; want one block size in all of the trace`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = Load(context.Background(), append(paths[:2:2], filepath.Join(dir, "none")), o)
	if want := filepath.Join(dir, "none") + ": no such file"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestDynamoSentences(t *testing.T) {
	with := func(o Options, change func(*Options)) Options { change(&o); return o }
	child := edit(edit(spoken, `"S"`, `"C","parent_session_id":"S"`), `"a"`, `"c"`)
	dep := func(text, deps string) string {
		return edit(text, `"replay":{`, `"replay":{"dependencies":[`+deps+`],`)
	}
	for _, c := range []struct {
		o          Options
		text, want string
	}{
		{records, "", "found no request_end record, want at least one"},
		{records, toolUsed, "found no request_end record, want at least one"},
		{records, "{", "1: column 2: the line ends too early, want a complete JSON object"},
		{records, alone + "\n" + `{"event":7}`, `2: field "event": found 7, want an object`},
		{records, `{}`, `1: field "event_type" is missing, want "request_end", "tool_end", "tool_error", "request_payload" or "tool_start"`},
		{records, edit(alone, "request_end", "x"), `1: field "event_type": found "x", want "request_end", "tool_end", "tool_error", "request_payload" or "tool_start"`},
		{records, edit(alone, "trace.v1", "trace.v2"), `1: field "schema": found "dynamo.request.trace.v2", want "dynamo.request.trace.v1"`},
		{records, edit(alone, "110", "1.5"), `1: field "event_time_unix_ms": found 1.5, want a whole number of milliseconds from 0`},
		{records, edit(alone, `"request":`, `"x":`), `1: field "request" is missing, want the request that has ended`},
		{records, edit(alone, `"replay":`, `"x":`), `1: field "request.replay" is missing, want an object`},
		{records, edit(alone, `"a"`, `" "`), `1: field "request.request_id" is blank, want a name`},
		{records, edit(alone, `"output_tokens":2,`, ``), `1: field "request.output_tokens" is missing, want an integer from 0`},
		{records, edit(alone, `tokens":2`, `tokens":4294967296`), `1: field "request.output_tokens": found 4294967296, want at most 2147483647`},
		{records, edit(alone, `ms":10,`, `ms":-1,`), `1: field "request.total_time_ms": found -1, want a number of milliseconds from 0`},
		{records, edit(alone, `:4,`, `:0,`), `1: field "request.replay.trace_block_size": found 0, want a positive integer`},
		{records, edit(alone, `:4,`, `:4294967296,`), `1: field "request.replay.trace_block_size": found 4294967296, want at most 2147483647`},
		{records, edit(alone, `:7`, `:0`), `1: field "request.replay.input_length": found 0, want a positive integer`},
		{records, edit(alone, `:7`, `:9`), `1: field "request.replay.input_length": found 9, want at most 8, which the input_sequence_hashes cover`},
		{records, edit(alone, `[5,6]`, `"5"`), `1: field "request.replay.input_sequence_hashes": found "5", want a list of integers from 0 to 18446744073709551615`},
		{records, alone + "\n" + alone, `2: field "request.request_id": found a again, want every request once`},
		{records, alone + "\n" + child, `2: field "agent_context": found requests with and without one; want it on all requests of a trace or on none`},
		{with(records, func(o *Options) { o.Lanes = 1 }), alone, "is a trace in the format dynamo, which has no plays for lanes (--agentic-lanes) to take up; want a trace of agents: agentic_mooncake, weka, or dynamo with an agent_context"},
		{with(records, func(o *Options) { o.WantBlockSize = 8 }), alone, "the requests were traced with a block size of 4 tokens, but 8 is asked for (--trace-block-size); want the same, or leave it out"},
		{records, spoken, "is a trace in the format dynamo, whose requests name models of their own; want the name of the model that serves them all (--execution-model)"},
		{with(agent, func(o *Options) { o.Concurrency = true }), spoken, "is a trace in the format dynamo, whose requests wait for each other and not for room under a cap (--replay-concurrency); want lanes (--agentic-lanes) or neither"},
		{agent, edit(spoken, `"S"`, `" "`), `1: field "agent_context.session_id" is blank, want a name`},
		{agent, edit(spoken, `"S"`, `""`), `1: field "agent_context.session_id" is blank, want a name`},
		{agent, edit(spoken, `"output`, `"model":" ","output`), `1: field "request.model" is blank, want a name, or leave it out`},
		{agent, edit(spoken, `:7`, `:9`), `1: field "request.replay.input_sequence_hashes": found 2 hashes, want exactly those that input_length needs, 3`},
		{agent, child, `1: field "agent_context.parent_session_id": found S for session C, but no request of it; want a session of the trace`},
		{agent, spoken + "\n" + child + "\n" + edit(edit(child, `"c"`, `"d"`), `d":"S"`, `d":"C"`), `3: field "agent_context.parent_session_id": found C for session C, which has another parent; want one parent a session`},
		{agent, spoken + "\n" + edit(spoken, `"a"`, `"b"`), "2: request b began 10 ms too early to have waited for a; want requests of a session one after the other"},
		{agent, dep(spoken, `{"request_id":"z","trigger":"completion","relation":"join"}`), "1: request a waits for z, which is not in the trace; want a request of the trace"},
		{agent, dep(spoken, `{"request_id":"a","trigger":"completion","relation":"join"}`), "1: request a waits for itself; want another request"},
		{agent, dep(spoken, `{"request_id":"c","trigger":"completion","relation":"join"}`) + "\n" + edit(child, ":100", ":200"), "1: request a waits for c, which began later; want a request that began before"},
		{agent, dep(child, `{"request_id":"a","trigger":"dispatch","relation":"join"}`) + "\n" + spoken, `1: field "request.replay.dependencies.trigger": found "dispatch" of a with another relation than "spawn", want "completion"`},
		{agent, spoken + "\n" + edit(toolUsed, "blocking", "x"), `2: field "tool.claude.execution_mode": found x for tool call t, want "blocking" or "background"`},
		{agent, spoken + "\n" + edit(toolUsed, `"a"`, `"z"`), "2: tool call t names request z, which is not in the trace; want a request of the trace"},
		{agent, spoken + "\n" + child + "\n" + edit(toolUsed, `"a"`, `"c"`), "3: tool call t names request c of another session than its own; want one of its session"},
		{agent, spoken + "\n" + child + "\n" + strings.Repeat(edit(toolUsed, `"exec`, `"child_session_id":"C","exec`)+"\n", 2), "4: tool call t calls session C, which another call has called; want one call a session"},
	} {
		path := write(t, "t.jsonl", []byte(c.text))
		want := path + ":" + c.want
		if !strings.ContainsAny(c.want[:1], "0123456789") {
			want = path + ": " + c.want
		}
		if loaded, err := Load(context.Background(), []string{path}, c.o); err == nil || err.Error() != want || loaded.Workload != nil {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, want)
		}
	}
}

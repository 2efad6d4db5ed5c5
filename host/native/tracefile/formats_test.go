package tracefile

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/intake"
)

const (
	talk   = `{"num_turns":1,"input_prompt_length":9,"assistant_response_length":[2],"tool_call_output_length":[3],"tool_call_latency":[0.01],"final_assistant_response_length":4}`
	header = `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"f","digest":"d"}}`
	node   = `{"request_id":"a","play_id":"P","session_id":"S","model":"m","input_length":100,"output_length":2,"hash_ids":[1,2],"not_before_ms":0}`
)

var (
	talks = Options{Format: AppliedCompute, TraceBlockSize: 4, Concurrency: true}
	plays = Options{Format: AgenticMooncake, TraceBlockSize: 4, ArrivalSpeedup: 1, ExecutionModel: "m"}
)

func edit(text, old, now string) string {
	if !strings.Contains(text, old) {
		panic(old)
	}
	return strings.Replace(text, old, now, 1)
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]Format{
		good: Mooncake, alone: Dynamo, toolUsed: Dynamo, `{"event":{}}`: Dynamo, header: AgenticMooncake, talk: AppliedCompute, node: AgenticMooncake, played: Weka, azure: Azure, burst: BurstGPT, "\"x\", GeneratedTokens ": Azure,
		`{"hash_id_scope":"local","version":2}`: AgenticMooncake, "{\n \"hash_id_scope\":\"local\",\n \"requests\":[": Weka,
		`{"request_id":"a","wait_for":["b"]}`:                       AgenticMooncake,
		"\n \r\n" + talk:                                            AppliedCompute,
		`{"x":{"num_turns":1},"hash_ids":[],"input_prompt_length":`: Mooncake,
		`{"schema":"something else","hash_ids":[]}`:                 Mooncake,
		"": Mooncake, "x": Mooncake, "[1]": Mooncake, "{": Mooncake,
	} {
		if got := intake.Detect([]byte(text)); got != want {
			t.Errorf("%s is read as %s, want %s", text, got, want)
		}
	}
}

// A trace is read as what it looks like, however its bytes arrive.
func TestAuto(t *testing.T) {
	for text, o := range map[string]Options{good: plain, talk: talks, header + "\n" + node: plays} {
		want := o.Format
		if want == Auto {
			want = Mooncake
		}
		o.Format = Auto
		for _, data := range [][]byte{[]byte(text), []byte("\n\n" + text + "\n"), gz(t, text), gz(t, "", text[:20], text[20:]), zst(t, text)} {
			loaded, err := Load(context.Background(), []string{write(t, "trace", data)}, o)
			if err != nil || loaded.Format != want || loaded.Info.Rows != 1 || len(loaded.Workload.Sessions) != 1 {
				t.Errorf("%s: %v %+v", text, err, loaded)
			}
		}
	}
}

func TestFormatNames(t *testing.T) {
	for _, name := range []string{"mooncake", "mooncake-delta", "mooncake_delta", "agentic_mooncake", "agentic-mooncake", "applied_compute_agentic", "dynamo", "weka", "azure", "burstgpt"} {
		if f, ok := ParseFormat(name); !ok || strings.ReplaceAll(f.String(), "_", "-") != strings.ReplaceAll(name, "_", "-") {
			t.Errorf("%s is %s, %v", name, f, ok)
		}
	}
	for _, name := range []string{"", "auto", "Mooncake", "x"} {
		if f, ok := ParseFormat(name); ok {
			t.Errorf("%q is %s", name, f)
		}
	}
}

func TestFormatSentences(t *testing.T) {
	wait := func(text string) string {
		return edit(node, `"not_before_ms"`, `"dependencies":[`+text+`],"not_before_ms"`)
	}
	on := func(request string) string {
		return fmt.Sprintf(`{"request_id":%q,"trigger":"completion","relation":"join","delay_ms":0}`, request)
	}
	other := edit(edit(node, `"a"`, `"b"`), `"P"`, `"Q"`)
	for _, c := range []struct {
		o          Options
		text, want string
	}{
		{talks, "", "the file is empty, want at least one row"},
		{talks, "\n", "found only blank lines, want at least one row"},
		{talks, talk + "\n\n{", "3: column 2: the line ends too early, want a complete JSON object"},
		{talks, edit(talk, `"num_turns":1,`, ``), `1: field "num_turns" is missing, want an integer from 0`},
		{talks, edit(talk, `:9`, `:-9`), `1: field "input_prompt_length": found -9, want a positive integer`},
		{talks, edit(talk, `:9`, `:0`), `1: field "input_prompt_length": found 0, want a positive integer`},
		{talks, edit(talk, `[2]`, `[2,"3"]`), `1: field "assistant_response_length": found "3", want a list of integers from 0`},
		{talks, edit(talk, `[2]`, `2`), `1: field "assistant_response_length": found 2, want a list of integers from 0`},
		{talks, edit(talk, `[2]`, `[2,3]`), `1: field "assistant_response_length": found 2 items, want as many as num_turns says, 1`},
		{talks, edit(talk, `[0.01]`, `[true]`), `1: field "tool_call_latency": found true, want a list of numbers of seconds from 0`},
		{talks, edit(talk, `[0.01]`, `[1e999]`), `1: field "tool_call_latency": found 1e999, want a number that fits a 64-bit float`},
		{talks, edit(talk, `[0.01]`, `[-1]`), `1: field "tool_call_latency": found -1, want numbers of seconds from 0`},
		{talks, edit(talk, `[0.01]`, `[1e306]`), `1: field "tool_call_latency": found 1e+306, want seconds that are finite as milliseconds`},
		{talks, edit(talk, `[3]`, `[2147483647]`), `1: field "tool_call_output_length": the conversation grows to 2147483657 tokens, want at most 2147483647`},
		{talks, edit(talk, `length":4`, `length":4294967296`), `1: field "final_assistant_response_length": found 4294967296, want at most 2147483647`},

		{plays, "", "the file is empty, want at least one row"},
		{plays, header, "found a header only, want at least one request after it"},
		{plays, node, `1: found a request, want the header {"schema":"dynamo.agentic_mooncake","version":2,"block_size":...,"hash_id_scope":"local","source":{"format":...,"digest":...}}; ` +
			`without one this is version 1 of the format, whose requests wait with "wait_for" and "delay" instead of "dependencies"`},
		{plays, "{}", `1: field "schema" is missing, want "dynamo.agentic_mooncake"`},
		{plays, edit(header, `:2,`, `:1,`), `1: field "version": found 1, want 2`},
		{plays, edit(header, `local`, `global`), `1: field "hash_id_scope": found "global", want "local"`},
		{plays, edit(header, `64`, `0`), `1: field "block_size": found 0, want a positive integer`},
		{plays, edit(header, `64`, `2147483648`), `1: field "block_size": found 2147483648, want at most 2147483647`},
		{plays, edit(header, `"f"`, `" "`), `1: field "source.format" is blank, want a name`},
		{plays, edit(header, `"d"`, `""`), `1: field "source.digest" is blank, want a text`},
		{plays, edit(header, `{"format":"f","digest":"d"}`, `"f"`), `1: field "source": found "f", want an object with a format and a digest`},
		{plays, header + "\n" + edit(node, `"model":"m",`, ``), `2: field "model" is missing, want a string`},
		{plays, header + "\n" + edit(node, `"m"`, `" "`), `2: field "model" is blank, want a name`},
		{plays, header + "\n" + edit(node, `[1,2]`, `[1]`), `2: field "hash_ids": found 1 ids, want exactly those that input_length needs, 2`},
		{plays, header + "\n" + edit(node, `ms":0`, `ms":-0.5`), `2: field "not_before_ms": found -0.5, want a number of milliseconds from 0`},
		{plays, header + "\n" + edit(node, `ms":0`, `ms":"x"`), `2: field "not_before_ms": found "x", want a number of milliseconds from 0`},
		{plays, header + "\n" + node + "\n" + node, `3: field "request_id": found a again, want every request once`},
		{plays, header + "\n" + edit(node, `length":2`, `length":4294967296`), `2: field "output_length": found 4294967296, want at most 2147483647`},
		{plays, header + "\n" + edit(node, `"hash_ids"`, `"output_token_ids":[1],"hash_ids"`), `2: field "output_token_ids": found 1 ids, want as many as output_length says, 2`},
		{plays, header + "\n" + wait("5"), `2: field "dependencies": found 5, want a list of objects, each a dependency`},
		{plays, header + "\n" + wait(edit(on("b"), "completion", "start")), `2: field "dependencies.trigger": found "start", want "dispatch" or "completion"`},
		{plays, header + "\n" + wait(edit(on("b"), "join", "meet")), `2: field "dependencies.relation": found "meet", want "sequence", "spawn", "join" or "replay_barrier"`},
		{plays, header + "\n" + wait(edit(on("b"), ":0", ":-2")), `2: field "dependencies.delay_ms": found -2, want a number of milliseconds from 0`},
		{plays, header + "\n" + wait(edit(on("b"), "completion", "dispatch")), `2: field "dependencies.trigger": found "dispatch" of b with another relation than "spawn", want "completion"`},
		{plays, header + "\n" + wait(on("b")), "2: request a waits for b, which is not in the trace; want a request of the trace"},
		{plays, header + "\n" + wait(on("a")), "2: request a waits for itself; want another request"},
		{plays, header + "\n" + wait(on("b")) + "\n" + other, "2: request a waits for b, which is in another play; want a request of the same play"},
		{plays, header + "\n" + edit(wait(on("b")), `"S"`, `"X"`) + "\n" + edit(edit(wait(on("a")), `id":"a","play`, `id":"b","play`), `"S"`, `"X"`),
			"2: 2 requests wait for each other for ever, a among them; want dependencies without a cycle"},
		{plays, header + "\n" + edit(node, `"m"`, `"m","source_play_ordinal":3`), `field "source_play_ordinal": found 3 where 0 comes next; want the numbers from 0, each once`},
		{plays, header + "\n" + edit(node, `"m"`, `"m","source_play_ordinal":0`) + "\n" + other, `field "source_play_ordinal": play Q has none, but others do; want one for every play or for none`},
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

package tracefile

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// listener is a survey that writes down what it is told.
type listener struct {
	rows, checked int
	bad           []string
	most          int // 0: it listens to all
}

func (l *listener) Row(*trace.Row, workload.Checked) { l.rows++ }
func (l *listener) Checked(*workload.Checker)        { l.checked++ }
func (l *listener) Bad(e *Error) bool {
	l.bad = append(l.bad, e.Error())
	return len(l.bad) != l.most
}

func survey(l *listener, format Format, text string) (*Trace, error) {
	return Load(context.Background(), []string{"-"}, Options{Format: format, TraceBlockSize: 64, Survey: l, Stdin: strings.NewReader(text)})
}

// Every bad row is told, and nothing else.
func TestSurveyTellsEveryBadRow(t *testing.T) {
	const good = `{"timestamp":1,"input_length":9,"output_length":1,"hash_ids":[1]}`
	for _, c := range []struct {
		name   string
		format Format
		text   string
		want   []string // after "standard input:"
		rows   int
		end    string // the error, if it is not the first of want
	}{
		{"mooncake", Auto, strings.Join([]string{good, `{"timestamp":`, "", `{"timestamp":1,"input_length":900,"output_length":1,"hash_ids":[1]}`, good,
			`{"timestamp":2,"input_length":9,"hash_ids":[1]}`, `{"session_id":"s","delay":4,"input_length":9,"output_length":1,"hash_ids":[1]}`, good}, "\n"),
			[]string{
				`2: column 14: the line ends too early, want a complete JSON object`,
				`4: field "input_length": found 900, want at most 64, which the row's 1 hash_ids cover with a trace block size of 64; this row was written with at least 900`,
				`6: field "output_length" is missing, want an integer from 0`,
				`7: field "delay": found 4 on the first turn of session s, want a delay on later turns only`,
			}, 3, ""},
		{"some without a start", Auto, strings.Join([]string{good, `{"session_id":"x","input_length":9,"output_length":1,"hash_ids":[1]}`, `{"input_length":9,"output_length":1,"hash_ids":[1]}`}, "\n"),
			[]string{
				`2: field "timestamp" is missing on the first turn of session x, want one unless a concurrency cap starts the sessions`,
				`3: field "timestamp" is missing on the first turn of session request_3, want one unless a concurrency cap starts the sessions`,
			}, 3, ""},
		{"none with a start", Auto, `{"input_length":9,"output_length":1,"hash_ids":[1]}`, nil, 1, ""},
		{"starts too far apart", Auto, `{"timestamp":-1e308,"input_length":9,"output_length":1,"hash_ids":[1]}
{"timestamp":1.5e308,"input_length":9,"output_length":1,"hash_ids":[1]}`, nil, 2,
			`standard input:2: field "timestamp": found one on the first turn of session request_2 too far from the earliest, want a finite start after the speed-up`},
		{"empty", Auto, "\n", nil, 0, "standard input: found only blank lines, want at least one row"},
		{"a table", Auto, "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,many,1\n2023-11-16 18:17:03,5,1\n2023-11-16 18:17:03,0,1\n2023-11-16,0,1\n", []string{
			`2: column "ContextTokens": found many, want an integer from 0`,
			`4: column "ContextTokens": found 0, want a positive integer`,
			`5: column "TIMESTAMP": found 2023-11-16, want a time like 2023-11-16 18:15:46.6805900, or with an offset from UTC like +00:00 behind it`,
		}, 0, ""},
		{"a header of another kind", Azure, "TIMESTAMP,Tokens\n1,2\n3,4\n", nil, 0, `standard input:1: column "ContextTokens" is missing in the header, want it there`},
		{"conversations", AppliedCompute, strings.Repeat(`{"num_turns":1,"input_prompt_length":0,"assistant_response_length":[2],"tool_call_output_length":[3],"tool_call_latency":[0.01],"final_assistant_response_length":4}`+"\n", 2),
			[]string{`1: field "input_prompt_length": found 0, want a positive integer`, `2: field "input_prompt_length": found 0, want a positive integer`}, 0, ""},
		{"agents", Auto, `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"f","digest":"d"}}
{"request_id":"a","play_id":"P","session_id":"S","model":"m","input_length":100,"output_length":2,"hash_ids":[1],"not_before_ms":0}
{"request_id":"b","play_id":"P","session_id":"S","model":"m","input_length":100,"output_length":2,"hash_ids":[1,2],"not_before_ms":0}
{"request_id":"b","play_id":"P","session_id":"S","model":"m","input_length":100,"output_length":2,"hash_ids":[1,2],"not_before_ms":0}
{"request_id":"c","play_id":" ","session_id":"S","model":"m","input_length":100,"output_length":2,"hash_ids":[1,2],"not_before_ms":0}`, []string{
			`2: field "hash_ids": found 1 ids, want exactly those that input_length needs, 2`,
			`4: field "request_id": found b again, want every request once`,
			`5: field "play_id" is blank, want a name`,
		}, 0, ""},
		{"agents of version 1", AgenticMooncake, `{"request_id":"a","output_length":1,"hash_ids":[1]}` + "\n" + good, nil, 0, "standard input:1: found a request, want the header"},
		{"records", Dynamo, `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":5}
{"schema":"dynamo.request.trace.v1","event_type":"nonsense","event_time_unix_ms":5}`, []string{
			`1: field "request" is missing, want the request that has ended`,
			`2: field "event_type": found "nonsense", want "request_end", "tool_end", "tool_error", "request_payload" or "tool_start"`,
		}, 0, ""},
	} {
		l := &listener{}
		_, err := survey(l, c.format, c.text)
		var want []string
		for _, w := range c.want {
			want = append(want, "standard input:"+w)
		}
		if fmt.Sprintf("%q", l.bad) != fmt.Sprintf("%q", want) || l.rows != c.rows {
			t.Errorf("%s: %d rows and\n%s\nwant %d and\n%s", c.name, l.rows, strings.Join(l.bad, "\n"), c.rows, strings.Join(want, "\n"))
		}
		switch {
		case c.end != "":
			if err == nil || !strings.HasPrefix(err.Error(), c.end) {
				t.Errorf("%s: %v, want %s", c.name, err, c.end)
			}
		case (err == nil) != (len(want) == 0) || err != nil && err.Error() != want[0]:
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A survey may stop at a bad row.
func TestSurveyStops(t *testing.T) {
	l := &listener{most: 2}
	if _, err := survey(l, Auto, strings.Repeat("[]\n", 5)); err == nil || len(l.bad) != 2 || l.checked != 0 {
		t.Errorf("%v after %d bad rows", err, len(l.bad))
	}
}

// The first thing a survey finds wrong is what Load finds wrong.
func TestSurveyAgreesWithLoad(t *testing.T) {
	wrong := 0
	for seed := range int64(3000) {
		rng := rand.New(rand.NewSource(seed))
		var b strings.Builder
		for i := range 1 + rng.Intn(8) {
			fmt.Fprintf(&b, `{"session_id": "s%d", "timestamp": %d, "input_length": %d, "output_length": 3, "hash_ids": [%d, 2]}`+"\n",
				rng.Intn(4), i*10, 1+rng.Intn(128), rng.Intn(3))
		}
		text := []byte(b.String())
		for range rng.Intn(3) {
			text[rng.Intn(len(text))] = "0123456789-,:]}{ \"e."[rng.Intn(20)]
		}
		_, want := Load(context.Background(), []string{"-"}, Options{TraceBlockSize: 64, ArrivalSpeedup: 1, Stdin: strings.NewReader(string(text)), Format: Mooncake})
		l := &listener{}
		trace, got := survey(l, Mooncake, string(text))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			var e *Error // that no session has a start is for the run to say
			if errors.As(want, &e) && strings.Contains(e.Text, `"timestamp" is missing`) && got == nil {
				continue
			}
			t.Fatalf("seed %d: survey %v, load %v\n%s", seed, got, want, text)
		}
		if want != nil {
			wrong++
		} else if int64(l.rows) != trace.Info.Rows {
			t.Fatalf("seed %d: %d rows of %d", seed, l.rows, trace.Info.Rows)
		}
	}
	if wrong < 500 {
		t.Errorf("only %d traces are wrong", wrong)
	}
}

package coretest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/dynamo"
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// word is a case of words.mjs.
type word struct {
	What      string   `json:"what"`
	Frame     string   `json:"frame,omitempty"`
	BlockSize int      `json:"blockSize,omitempty"`
	Format    string   `json:"format,omitempty"`
	Bits      string   `json:"bits,omitempty"`
	Text      string   `json:"text"`
	Known     []string `json:"known,omitempty"`
	want      string
	about     string
}

func compareWords(t *testing.T, cases []word) {
	t.Helper()
	var got []string
	if err := json.Unmarshal(node(t, "words.mjs", writeJSON(t, cases)), &got); err != nil || len(got) != len(cases) {
		t.Fatalf("%d answers of %d, %v", len(got), len(cases), err)
	}
	wrong := 0
	for i, c := range cases {
		if got[i] != c.want {
			if wrong++; wrong < 20 {
				t.Errorf("%s:\ngot  %s\nwant %s", c.about, got[i], c.want)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d differ", wrong, len(cases))
	}
}

// Numbers are spelt as the report, the lines and the sentences of the command
// line have them.
func TestFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	xs := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e15, 1e16, 123456789012345680, 1e-4, 1e-5, 9.999e-5, 1e5, 1e6, 999999.5, 1e21, 5e-324, math.MaxFloat64, 1 << 53, math.Inf(1), math.Inf(-1), math.NaN()}
	for range 20_000 {
		xs = append(xs, math.Float64frombits(r.Uint64()), r.Float64()*math.Pow(10, float64(r.IntN(24)-8)), float64(r.IntN(1<<40))/1e6, math.Round(r.Float64()*1e9)/1e3)
	}
	var cases []word
	for _, x := range xs {
		bits := strconv.FormatUint(math.Float64bits(x), 10)
		for what, want := range map[string]string{
			"python": string(cliutil.AppendPythonFloat(nil, x)), "line": string(cliutil.AppendSerdeFloat(nil, x)), "sentence": strconv.FormatFloat(x, 'g', -1, 64),
		} {
			cases = append(cases, word{What: what, Bits: bits, want: want, about: what + " " + bits})
		}
	}
	compareWords(t, cases)
}

// Texts are quoted as sentences and JSON have them, and near names are found.
func TestTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	known := []string{"num_gpu_blocks", "block_size", "max_num_seqs", "engine", "dp_size", "speedup_ratio"}
	texts := []string{"", "a", `"\`, "\x00\x01\x7f\n\t\r\b\f\v\a", "é世界😀", "\u2028\u200b\ufeff\u00a0", strings.Repeat("x", 60), strings.Repeat("é", 31), "numgpublocks", "blokc_size", "DP_SIZE", "unknown"}
	runes := []rune("ab \"\\\n\té世😀\u200b\x01_-")
	for range 500 {
		var b strings.Builder
		for range r.IntN(80) {
			b.WriteRune(runes[r.IntN(len(runes))])
		}
		near := []rune(known[r.IntN(len(known))])
		near[r.IntN(len(near))] = runes[r.IntN(2)]
		texts = append(texts, b.String(), string(near))
	}
	var cases []word
	for _, s := range texts {
		near, _ := cliutil.Nearest(s, known)
		cases = append(cases, word{What: "quote", Text: s, want: cliutil.Quote(s), about: "quote"}, word{What: "json", Text: s, want: string(cliutil.AppendJSONString(nil, s)), about: "json"},
			word{What: "nearest", Text: s, Known: known, want: near, about: "nearest " + s})
	}
	compareWords(t, cases)
}

// findings makes findings of every code and field, with what else they say
// drawn at random.
type findings struct {
	r     *rand.Rand
	cases []word
}

func (f *findings) text(most int) []byte {
	alphabet := []string{"a", "1", `"`, ":", ",", "}", "]", " ", "\t", "é", "世", "\x01", "\xff", "\u200b", "-", "x", "null", `"input_tokens"`}
	var b []byte
	for n := 1 + f.r.IntN(most); n > 0; n-- {
		b = append(b, alphabet[f.r.IntN(len(alphabet))]...)
	}
	return b
}

func (f *findings) number() int64 {
	return []int64{0, 1, -1, 7, 512, 1 << 31, 1<<53 - 1, 1 << 40, f.r.Int64N(1 << 50)}[f.r.IntN(9)]
}

func (f *findings) ms() float64 {
	return []float64{-1.5, -1e-7, -1e9, -3, 0.1, 1e300, -25.5, 1e-5}[f.r.IntN(8)]
}

// add words a finding.
func (f *findings) add(x intake.Finding, format intake.Format, about string) {
	const blockSize = 64
	x.Line = []int64{0, 3, 123456}[f.r.IntN(3)]
	if x.Kind == intake.ByRow && x.Row.Code == workload.Empty {
		x.Line = 0
	}
	lines := x.Line + int64(f.r.IntN(2))
	fault := frame.TraceFault{Finding: x, Lines: lines, Format: format}
	err := tracefile.Sentence(&x, tracefile.Options{Format: format, TraceBlockSize: blockSize, MaxLine: trace.MaxLine, ArrivalSpeedup: 1}, lines, "F")
	want := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "F:"), " ")
	f.cases = append(f.cases, word{What: "trace", Frame: hex.EncodeToString(frame.Append(nil, fault.Fields())), BlockSize: blockSize, Format: format.String(), want: want, about: fmt.Sprintf("%s, %v", about, format)})
}

// fields are those of the rows of a format.
var fields = map[intake.Format][][2]trace.Field{
	intake.Mooncake: {{0, 11}}, intake.MooncakeDelta: {{0, 11}}, intake.AgenticMooncake: {{0, 28}}, intake.AppliedCompute: {{0, 0}, {40, 45}},
	intake.Dynamo: {{0, 0}, {60, 90}}, intake.Weka: {{0, 0}, {14, 15}, {100, 114}}, intake.Azure: {{0, 0}, {120, 122}}, intake.BurstGPT: {{0, 0}, {123, 127}},
}

func (f *findings) lines() {
	for format := intake.Mooncake; format <= intake.BurstGPT; format++ {
		for _, span := range fields[format] {
			for field := span[0]; field <= span[1]; field++ {
				for code := trace.CutOff; code <= trace.OpenQuote; code++ {
					for range 2 {
						text := f.text(30)
						p := trace.Fault{Code: code, Field: field, Start: f.r.IntN(len(text))}
						p.End = p.Start + 1 + f.r.IntN(len(text)-p.Start)
						if alias := field.Alias(); alias != "" && f.r.IntN(2) == 0 {
							p.Key = len(text)
							text = append(text, `"`+alias+`": 1`...)
						}
						x := intake.Finding{Kind: intake.ByLine, Parse: p, Text: text, Outer: -1, Inner: -1}
						if format == intake.Weka {
							x.Outer, x.Single = int32(f.r.IntN(4)-1), f.r.IntN(2) == 0
							if x.Outer >= 0 {
								x.Inner = int32(f.r.IntN(4) - 1)
							}
						}
						f.add(x, format, fmt.Sprintf("line code %d, field %d", code, field))
					}
				}
			}
		}
	}
	text := []byte(`{"wait_for": [], "request_id": "a"}`)
	f.add(intake.Finding{Kind: intake.ByLine, Parse: trace.Fault{Code: trace.Missing, Field: trace.Schema}, Text: text, Outer: -1, Inner: -1}, intake.AgenticMooncake, "version 1")
}

func (f *findings) rows() {
	for code := workload.TooManyLines; code <= workload.TalkTooLong; code++ {
		for _, format := range []intake.Format{intake.Mooncake, intake.MooncakeDelta, intake.AppliedCompute, intake.Azure, intake.BurstGPT} {
			for range 6 {
				row := workload.Fault{Code: code, Turn: int32(f.r.IntN(9)), Found: f.number(), Limit: f.number(), Ms: f.ms()}
				if format == intake.AppliedCompute {
					row.Field = trace.NumTurns + trace.Field(f.r.IntN(6))
				}
				row.Found = max(row.Found, 0)
				f.add(intake.Finding{Kind: intake.ByRow, Row: row, InputLength: f.number(), IDs: f.r.IntN(5), SessionID: f.text(20)}, format, fmt.Sprintf("row code %d", code))
			}
		}
	}
}

func (f *findings) graph(code agentic.Code) agentic.Fault {
	return agentic.Fault{Code: code, Field: trace.Field(1 + f.r.IntN(28)), Found: f.number(), Limit: f.number(), Ms: f.ms(), Name: f.text(20), Other: f.text(20)}
}

func (f *findings) graphs() {
	for code := agentic.TooManyLines; code <= agentic.TimeTooLate; code++ {
		for range 3 {
			f.add(intake.Finding{Kind: intake.ByGraph, Graph: f.graph(code)}, intake.AgenticMooncake, fmt.Sprintf("graph code %d", code))
			if code == agentic.Empty { // of traces with a header only
				continue
			}
			f.add(intake.Finding{Kind: intake.ByRecord, Record: dynamo.Fault{Code: dynamo.Graph, Graph: f.graph(code)}}, intake.Dynamo, fmt.Sprintf("graph code %d", code))
			f.add(intake.Finding{Kind: intake.ByObject, Object: weka.Fault{Code: weka.Graph, Graph: f.graph(code)}, Outer: -1, Inner: -1}, intake.Weka, fmt.Sprintf("graph code %d", code))
		}
	}
	for code := dynamo.NoRequest; code <= dynamo.Plain; code++ {
		for row := workload.TooManyLines; row <= workload.TalkTooLong; row++ {
			d := dynamo.Fault{Code: code, Field: trace.Wrapper + trace.Field(f.r.IntN(31)), Found: f.number(), Limit: f.number(), Ms: f.ms(), Name: f.text(20), Other: f.text(20)}
			d.Row = workload.Fault{Code: row, Found: f.number(), Limit: f.number()}
			f.add(intake.Finding{Kind: intake.ByRecord, Record: d}, intake.Dynamo, fmt.Sprintf("record code %d", code))
		}
	}
	for code := weka.Blank; code < weka.Graph; code++ {
		if code == weka.NoObjects { // intake.NoObject says it
			continue
		}
		for range 6 {
			o := weka.Fault{Code: code, Field: trace.WekaID + trace.Field(f.r.IntN(15)), Found: f.number(), Limit: f.number(), Found64: f.ms(), Limit64: f.ms(), Name: f.text(20)}
			f.add(intake.Finding{Kind: intake.ByObject, Object: o, Outer: int32(f.r.IntN(3) - 1), Inner: int32(f.r.IntN(3) - 1)}, intake.Weka, fmt.Sprintf("object code %d", code))
		}
	}
}

func (f *findings) traces() {
	for code := intake.NestedTimes; code <= intake.ObjectTooLong; code++ {
		if code == intake.NeedsFile {
			continue // of a reader without files
		}
		for format := intake.Mooncake; format <= intake.BurstGPT; format++ {
			f.add(intake.Finding{Kind: intake.ByTrace, Code: code, Found: f.number(), Limit: f.number()}, format, fmt.Sprintf("trace code %d", code))
		}
	}
}

// What can be wrong with a trace, of every code and field, is said in the
// sentences of the command line.
func TestTraceSentences(t *testing.T) {
	f := findings{r: rand.New(rand.NewPCG(7, 8))}
	f.lines()
	f.rows()
	f.graphs()
	f.traces()
	compareWords(t, f.cases)
	if len(f.cases) < 5000 {
		t.Errorf("only %d cases", len(f.cases))
	}
}

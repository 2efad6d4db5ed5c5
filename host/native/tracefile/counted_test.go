package tracefile

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/workload"
)

const (
	azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,48,10\r\n2023-11-16 18:17:04.0319600,31,8"
	burst = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
		"100.0,s1,3,GPT-4,10,6,16,Conversation log\n101.5,,2,ChatGPT,9,1,10,API log\n110.0,s1,1,GPT-4,40,5,45,Conversation log\n" +
		"111.0,,0,ChatGPT,0,0,0,API log\n120.0,s1,1.5,GPT-4,12,5,17,Conversation log\n"
)

// shape writes turns as "session start+delay input>output blocks", blocks as
// numbers in the order they first come.
func shape(w *workload.Workload) string {
	var b strings.Builder
	name := map[uint64]int{}
	for i := range w.Turns {
		t := &w.Turns[i]
		s := w.Sessions[t.Session]
		fmt.Fprintf(&b, "%d %v+%v %d>%d", t.Session, s.StartMs, t.DelayMs, t.Input, t.Output)
		for _, id := range w.Prompts.AppendIDs(nil, t.Leaf, int(t.IDs)) {
			if name[id] == 0 {
				name[id] = len(name) + 1
			}
			fmt.Fprintf(&b, " %d", name[id])
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestCounted(t *testing.T) {
	o := Options{TraceBlockSize: 16, ArrivalSpeedup: 1}
	with := func(change func(*Options)) Options { o := o; change(&o); return o }
	six := "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,20,18,38,Conversation log\n45,ChatGPT,10,23,33,Conversation log\n"
	for _, c := range []struct {
		name       string
		o          Options
		text, want string
		format     Format
	}{
		{"azure", o, azure, "0 0+0 48>10 1 2 3; 1 52+0 31>8 4 5", Azure},
		{"faster", with(func(o *Options) { o.ArrivalSpeedup = 2 }), azure, "0 0+0 48>10 1 2 3; 1 26+0 31>8 4 5", Azure},
		{"under a cap", with(func(o *Options) { o.Concurrency = true }), azure, "0 0+0 48>10 1 2 3; 1 0+0 31>8 4 5", Azure},
		{"with offsets, out of order", o, "ContextTokens,x,GeneratedTokens,\"TIMESTAMP\"\n1,\"a,\"\"b\",2,2024-05-10T00:00:00.5+00:00\n\n3,,4,2024-05-09 23:00:00-01:00\n5,,6,2024-05-10 00:00:00.250000Z",
			"0 500+0 1>2 1; 1 0+0 3>4 2; 2 250+0 5>6 3", Azure},
		{"groups", with(func(o *Options) { o.SharedPrefixRatio, o.PrefixGroups = 0.5, 1 }), azure, "0 0+0 48>10 1 2 3; 1 52+0 31>8 1 4", Azure},
		{"groups of one", with(func(o *Options) { o.SharedPrefixRatio, o.PrefixGroups = 0.5, 2 }), azure, "0 0+0 48>10 1 2 3; 1 52+0 31>8 4 5", Azure},
		// The third prompt does not repeat what was said; 7000 ms after the answer.
		{"burst", o, burst, "0 0+0 10>6 1; 1 1500+0 9>1 2; 0 0+7000 40>5 1 3 4; 0 0+9000 12>5 5", BurstGPT},
		{"burst in groups", with(func(o *Options) { o.SharedPrefixRatio, o.PrefixGroups = 1, 1 }), burst, "0 0+0 10>6 1; 1 1500+0 9>1 1; 0 0+7000 40>5 1 2 3; 0 0+9000 12>5 1", BurstGPT},
		{"burst, first release", o, six, "0 0+0 20>18 1 2; 1 40000+0 10>23 3", BurstGPT},
	} {
		for _, format := range []Format{Auto, c.format} {
			c.o.Format = format
			loaded, err := Load(context.Background(), []string{write(t, "t.csv", []byte(c.text))}, c.o)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			if got := shape(loaded.Workload); got != c.want || loaded.Format != c.format {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", c.name, loaded.Format, got, c.want)
			}
			if c.text == burst && (loaded.Info.Failed != 1 || loaded.Info.Rows != 5) {
				t.Errorf("%+v", loaded.Info)
			}
		}
	}
	if loaded, err := Load(context.Background(), []string{write(t, "t.csv.gz", gz(t, azure))}, o); err != nil || len(loaded.Workload.Turns) != 2 {
		t.Error(err)
	}
}

func TestCountedSentences(t *testing.T) {
	a, b := Options{Format: Azure, TraceBlockSize: 16, ArrivalSpeedup: 1}, Options{Format: BurstGPT, TraceBlockSize: 16, ArrivalSpeedup: 1}
	row := func(text string) string { return "TIMESTAMP,ContextTokens,GeneratedTokens\n" + text }
	const time = `column "TIMESTAMP": found `
	const wantTime = ", want a time like 2023-11-16 18:15:46.6805900, or with an offset from UTC like +00:00 behind it"
	for _, c := range []struct {
		o          Options
		text, want string
	}{
		{a, "", " the file is empty, want at least one row"},
		{a, "\n", " found only blank lines, want at least one row"},
		{a, row(""), " found a header only, want at least one request after it"},
		{a, "TIMESTAMP,ContextTokens", `1: column "GeneratedTokens" is missing in the header, want it there`},
		{a, "x\n1", `1: column "TIMESTAMP" is missing in the header, want it there`},
		{a, "TIMESTAMP,TIMESTAMP", `1: column "TIMESTAMP" is given twice in the header, want it once`},
		{a, "\ufeff" + azure, "1: the line begins with a byte order mark; want UTF-8 without one"},
		{a, row("2023-11-16 18:17:03,1"), "2: found fewer cells than the header has, want as many"},
		{a, row("2023-11-16 18:17:03,1,2,3"), "2: found 3 after as many cells as the header has, want no more"},
		{a, row(`2023-11-16 18:17:03,"1,2`), `2: found "1,2, a cell in quotes that does not end with one, want it closed in the same line`},
		{a, row(`2023-11-16 18:17:03,"1"x,2`), `2: found "1"x,2, a cell in quotes that does not end with one, want it closed in the same line`},
		{a, row("2023-11-16 18:17:03,,2"), `2: column "ContextTokens": found an empty cell, want an integer from 0`},
		{a, row("2023-11-16 18:17:03,1.5,2"), `2: column "ContextTokens": found 1.5, want an integer from 0`},
		{a, row("2023-11-16 18:17:03,-1,2"), `2: column "ContextTokens": found -1, want an integer from 0`},
		{a, row("2023-11-16 18:17:03,1,9223372036854775808"), `2: column "GeneratedTokens": found 9223372036854775808, want a number that fits 64 bits`},
		{a, row("2023-11-16 18:17:03,1,2147483648"), `2: column "GeneratedTokens": found 2147483648, want at most 2147483647`},
		{a, row("2023-11-16 18:17:03,2147483648,1"), `2: column "ContextTokens": found 2147483648, want at most 2147483647`},
		{a, row("2023-11-16 18:17:03,0,1"), `2: column "ContextTokens": found 0, want a positive integer`},
		{a, row("5,1,1"), "2: " + time + "5" + wantTime},
		{a, row("2023-02-29 18:17:03,1,1"), "2: " + time + "2023-02-29 18:17:03" + wantTime},
		{a, row("2023-11-16 24:17:03,1,1"), "2: " + time + "2023-11-16 24:17:03" + wantTime},
		{a, row("2023-11-16 18:17:03.,1,1"), "2: " + time + "2023-11-16 18:17:03." + wantTime},
		{a, row("2023-11-16 18:17:03.0123456789,1,1"), "2: " + time + "2023-11-16 18:17:03.0123456789" + wantTime},
		{a, row("2023-11-16 18:17:03+0100,1,1"), "2: " + time + "2023-11-16 18:17:03+0100" + wantTime},
		{a, row("1969-11-16 18:17:03,1,1"), "2: " + time + "1969-11-16 18:17:03" + wantTime},
		{b, "Timestamp,Request tokens", `1: column "Response tokens" is missing in the header, want it there`},
		{b, edit(burst, "100.0", "-1"), `2: column "Timestamp": found -1, want a number of seconds from 0`},
		{b, edit(burst, "100.0", "1e999"), `2: column "Timestamp": found 1e999, want a number that fits 64 bits`},
		{b, edit(burst, "100.0", "1e308"), `2: column "Timestamp": found a number of seconds that is none as milliseconds, want a smaller one`},
		{b, edit(burst, "100.0", "NaN"), `2: column "Timestamp": found NaN, want a number of seconds from 0`},
		{b, edit(burst, "s1,3,", "s1,x,"), `2: column "Elapsed time": found x, want a number of seconds from 0`},
		{b, "Timestamp,Request tokens,Response tokens\n1,0,0\n2,5,0", " found only requests without tokens, as those that failed have, want at least one with tokens"},
	} {
		path := write(t, "t.csv", []byte(c.text))
		want := path + ":" + c.want
		if loaded, err := Load(context.Background(), []string{path}, c.o); err == nil || err.Error() != want || loaded.Workload != nil {
			t.Errorf("%q\ngot  %v\nwant %s", c.text, err, want)
		}
	}
}

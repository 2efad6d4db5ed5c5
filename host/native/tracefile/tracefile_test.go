package tracefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dryserve/dryserve/core/workload"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const good = `{"timestamp":0,"input_length":100,"output_length":2,"hash_ids":[1,2]}`

// with is the good row with one thing replaced; and with more fields.
func with(old, now string) string { return strings.Replace(good, old, now, 1) }
func and(fields string) string    { return good[:len(good)-1] + "," + fields + "}" }

var plain = Options{TraceBlockSize: 64, ArrivalSpeedup: 1}

// load is Load of one file.
func load(ctx context.Context, path string, o Options) (*workload.Workload, Info, error) {
	t, err := Load(ctx, []string{path}, o)
	return t.Workload, t.Info, err
}

// write puts data into a file of a directory of the test's own.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeAll(t *testing.T, files map[string][]byte) {
	t.Helper()
	for path, data := range files {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func gz(t *testing.T, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func zst(t *testing.T, parts ...string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for _, part := range parts {
		b = w.EncodeAll([]byte(part), b)
	}
	return b
}

// The sentences for all that can be wrong with the text of a trace.
func TestSentences(t *testing.T) {
	const s = `"session_id":"A",`
	turn := func(fields string) string {
		return `{"input_length":100,"output_length":2,"hash_ids":[1,2],` + strings.Trim(fields, ",") + "}\n"
	}
	capped := Options{TraceBlockSize: 64, Concurrency: true}
	for _, c := range []struct {
		o          Options
		text, want string
	}{
		// A line by itself.
		{plain, "\n" + with("100", "-3"), `2: field "input_length": found -3, want a positive integer`},
		{plain, with("100", "1e2"), `1: field "input_length": found 1e2, want a positive integer`},
		{plain, with(`"input_length":100`, ` "input_tokens" : "x"`), `1: field "input_tokens": found "x", want a positive integer`},
		{plain, with("100", `"`+strings.Repeat("0123456789", 9)+`"`), `1: field "input_length": found "012345678901234567890123456789012345678..., want a positive integer`},
		{plain, with("100", `"`+strings.Repeat("é", 30)+`"`), `1: field "input_length": found "` + strings.Repeat("é", 19) + `..., want a positive integer`},
		{plain, with("100", "99999999999999999999"), `1: field "input_length": found 99999999999999999999, want a positive integer of at most 2147483647`},
		{plain, with(":2,", ":2.5,"), `1: field "output_length": found 2.5, want an integer from 0`},
		{plain, with(":2,", ":9223372036854775808,"), `1: field "output_length": found 9223372036854775808, want an integer from 0 to 2147483647`},
		{plain, with(`"output_length":2,`, ""), `1: field "output_length" is missing, want an integer from 0`},
		{plain, with("[1,2]", "null"), `1: field "hash_ids" is missing, want a list of integers from 0 to 18446744073709551615`},
		{plain, with("[1,2]", "[1,-2]"), `1: field "hash_ids": found -2, want a list of integers from 0 to 18446744073709551615`},
		{plain, with("[1,2]", "[1,2,]"), `1: field "hash_ids" (column 69): found ], want a list of integers from 0 to 18446744073709551615`},
		{plain, with("[1,2]", "[1 2]"), `1: field "hash_ids" (column 67): found 2, want ',' or ']'`},
		{plain, and(`"output_token_ids":[1,4294967296]`), `1: field "output_token_ids": found 4294967296, want a list of integers from 0 to 4294967295`},
		{plain, with(`:0`, `:"0"`), `1: field "timestamp": found "0", want a number of milliseconds`},
		{plain, with(`:0`, `:1e400`), `1: field "timestamp": found 1e400, want a number that fits a 64-bit float`},
		{plain, with(`:0`, `:NaN`), `1: field "timestamp" (column 14): found NaN, want a number of milliseconds`},
		{plain, with(`:0`, `:1.`), `1: field "timestamp" (column 14): found 1., want a number of milliseconds`},
		{plain, and(`"delay_ms":[]`), `1: field "delay_ms": found [], want a number of milliseconds from 0`},
		{plain, and(`"session_id":3`), `1: field "session_id": found 3, want a string`},
		{plain, and(`"session_id":"\ud800x"`), `1: field "session_id" (column 84): found \ud800, half of a surrogate pair, want both halves`},
		{plain, and(`"priority":2147483648`), `1: field "priority": found 2147483648, want an integer from -2147483648 to 2147483647`},
		{plain, and(`"strict_priority":-1`), `1: field "strict_priority": found -1, want an integer from 0 to 4294967295`},
		{plain, and(`"input_tokens":100`), `1: field "input_tokens" is given twice ("input_length" and "input_tokens" are one field), want it once`},
		{plain, and(`"hash_ids":[1,2]`), `1: field "hash_ids" is given twice, want it once`},
		{plain, good[:30], `1: column 31: the line ends too early, want a complete JSON object`},
		{plain, good[:66], `1: field "hash_ids" (column 67): the line ends too early, want a complete JSON object`},
		{plain, and(`"x":"\q"`), `1: column 75: found the escape \q, want one that JSON has`},
		{plain, and("\"x\":\"a\x01\""), `1: column 76: found the control byte \x01 in a string, want it escaped`},
		{plain, and("\"x\":\"a\xff\""), `1: column 76: found the byte \xff, want UTF-8`},
		{plain, and(`x:1`), `1: column 70: found x, want a key in double quotes`},
		{plain, and(`"x" 1`), `1: column 74: found 1, want ':' after the key`},
		{plain, with("100", "100 200"), `1: column 35: found 200, want ',' or '}'`},
		{plain, and(`"x":[1}`), `1: column 76: found }, want ',' or ']'`},
		{plain, good + " 7", `1: column 71: found 7 after the row, want one JSON object per line`},
		{plain, and(`"x":[tru]`), `1: column 75: found tru, want a JSON value`},
		{plain, and(`"x":-01`), `1: column 74: found -01, want a JSON number`},
		{plain, "\n\n[1,2]", `3: found [1,2], want a JSON object`},
		{plain, "hello\tworld\x1b", `1: found hello\tworld\x1b, want a JSON object`},
		{plain, "\ufeff" + good, `1: the line begins with a byte order mark; want UTF-8 without one`},
		{Options{TraceBlockSize: 64, MaxLine: 100}, good + "\n" + and(`"x":"0123456789012345678901234567890"`),
			`2: the line is longer than 100 bytes; want one JSON object per line`},

		// A row among the others.
		{plain, with("100", "1000"), `1: field "input_length": found 1000, want at most 128, which the row's 2 hash_ids cover with a trace block size of 64; this row was written with at least 500`},
		{plain, with("[1,2]", "[]"), `1: field "input_length": found 100, want at most 0, which the row's 0 hash_ids cover with a trace block size of 64`},
		{plain, with("100", "0"), `1: field "input_length": found 0, want a positive integer`},
		{plain, `{"output_length":1,"hash_ids":[]}`, `1: field "hash_ids": found [] and no "input_length", want a prompt of at least one token`},
		{Options{TraceBlockSize: 1 << 31}, with("100", "2147483648"), `1: field "input_length": found 2147483648, want at most 2147483647`},
		{Options{TraceBlockSize: 1 << 31}, with("100", "null"), `1: field "hash_ids": found 2 ids of 2147483648 tokens each and no "input_length", want a prompt of at most 2147483647 tokens`},
		{plain, with(":2,", ":2147483648,"), `1: field "output_length": found 2147483648, want at most 2147483647`},
		{plain, and(`"output_token_ids":[5]`), `1: field "output_token_ids": found 1 ids, want as many as output_length says, 2`},
		{plain, and(`"delay":5`), `1: field "delay": found 5 on the first turn of session request_1, want a delay on later turns only`},
		{plain, turn(s+`"timestamp":1`) + turn(s+`"delay":-0.5`), `2: field "delay": found -0.5, want a number of milliseconds from 0`},
		{plain, turn(s+`"timestamp":10`) + turn(s+`"timestamp":5`), `2: field "timestamp": found one 5 ms before that of the turn before of session A, want ascending timestamps in a session or a "delay"`},
		{plain, turn(s+`"timestamp":-1e308`) + turn(s+`"timestamp":1e308`), `2: field "timestamp": found one too far from that of the turn before of session A, want a finite difference`},
		{plain, turn(s) + turn(s+`"timestamp":5`), `2: field "timestamp": found one, but none on the turns before of session A, want a "delay" instead, or a timestamp there`},
		{plain, good + "\n\n" + turn(`"session_id":"a\nb"`), `3: field "timestamp" is missing on the first turn of session a\nb, want one unless a concurrency cap starts the sessions`},
		{capped, with(":0", ":-50"), `1: field "timestamp": found -50 on the first turn of session request_1, want 0 or more under a concurrency cap`},
		{Options{TraceBlockSize: 64, ArrivalSpeedup: 1e-300}, good + "\n" + with(":0", ":1e10"), `2: field "timestamp": found one on the first turn of session request_2 too far from the earliest, want a finite start after the speed-up`},
		{Options{TraceBlockSize: 64, ArrivalSpeedup: 1e-300}, turn(s+`"timestamp":1`) + turn(s+`"delay":1e10`), `1: the delay of turn 1 of session A is infinite after the speed-up, want a smaller delay or a greater speed-up`},
	} {
		path := write(t, "trace.jsonl", []byte(c.text))
		w, _, err := load(context.Background(), path, c.o)
		if err == nil || w != nil {
			t.Errorf("%.200s: no error", c.text)
		} else if got := strings.TrimPrefix(err.Error(), path+":"); got != c.want {
			t.Errorf("%.200s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

// The sentences for files that are no trace at all.
func TestFileSentences(t *testing.T) {
	zipped, packed := gz(t, strings.Repeat(good+"\n", 100)), zst(t, strings.Repeat(good+"\n", 100))
	damaged := func(b []byte, fromEnd int) []byte { // in the checksum
		b = bytes.Clone(b)
		b[len(b)-fromEnd] ^= 0x55
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"t.jsonl", nil, "the file is empty, want at least one row"},
		{"t.jsonl.gz", nil, "the file is empty, want at least one row"},
		{"t.jsonl.gz", gz(t, ""), "the file is empty, want at least one row"},
		{"t.jsonl", []byte("\n \t\n\n"), "found only blank lines, want at least one row"},
		{"t.jsonl.gz", []byte(good), `the name ends in .gz, but found {" at the start of the file; want gzip data`},
		{"t.jsonl.ZST", []byte(good), `the name ends in .zst, but found {"ti at the start of the file; want zstd data`},
		{"t.gz", packed, `the name ends in .gz, but found (\xb5 at the start of the file; want gzip data`},
		{"t.gz", zipped[:2], "the gzip data end too early; want the complete file"},
		{"t.gz", zipped[:5], "the gzip data end too early; want the complete file"},
		{"t.gz", zipped[:len(zipped)-1], "the gzip data end too early after line 100; want the complete file"},
		{"t.gz", append([]byte("\x1f\x8b\x00"), zipped[3:]...), "the gzip data are damaged (gzip: invalid header)"},
		{"t.gz", damaged(zipped, 6), "the gzip data are damaged"},
		{"t.gz", append(bytes.Clone(zipped), "something else"...), "the gzip data are damaged after line 100 (gzip: invalid header)"},
		{"t.zst", packed[:4], "the zstd data end too early; want the complete file"},
		{"t.zst", packed[:len(packed)-1], "the zstd data end too early"},
		{"t.zst", damaged(packed, 2), "the zstd data are damaged"},
	} {
		path := write(t, c.name, c.data)
		_, _, err := load(context.Background(), path, plain)
		if err == nil || !strings.HasPrefix(err.Error(), path+": "+c.want) {
			t.Errorf("%s %.20q\ngot  %v\nwant %s", c.name, c.data, err, c.want)
		}
	}

	dir := t.TempDir()
	if _, _, err := load(context.Background(), dir, plain); err == nil || err.Error() != dir+": is a directory without a file that ends in .json or .jsonl, want a trace file, or a directory of such files in the format weka" {
		t.Errorf("directory: %v", err)
	}
	missing := filepath.Join(dir, "none.jsonl")
	_, _, err := load(context.Background(), missing, plain)
	if err == nil || err.Error() != missing+": no such file" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	_, _, err = load(context.Background(), write(t, "x", []byte("x"))+"/y", plain)
	if err == nil || !strings.HasSuffix(err.Error(), "/y: cannot be opened: not a directory") {
		t.Errorf("file as directory: %v", err)
	}
	if os.Getuid() != 0 {
		path := write(t, "secret.jsonl", []byte(good))
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		_, _, err := load(context.Background(), path, plain)
		if err == nil || err.Error() != path+": may not be read: permission denied" {
			t.Errorf("no permission: %v", err)
		}
	}
}

// Reading that fails half-way is no fault of the trace.
func TestReadErrors(t *testing.T) {
	broken := fmt.Errorf("the disk is on fire")
	zipped := gz(t, strings.Repeat(good+"\n", 3))
	for _, c := range []struct {
		data []byte
		want string
	}{
		{[]byte(good + "\n" + good), "standard input: cannot be read after line 1: the disk is on fire"},
		{nil, "standard input: cannot be read: the disk is on fire"},
		{zipped[:len(zipped)-4], "standard input: cannot be read after line 3: the disk is on fire"},
	} {
		o := plain
		o.Stdin = io.MultiReader(bytes.NewReader(c.data), iotest.ErrReader(broken))
		_, _, err := load(context.Background(), Stdin, o)
		var e *Error
		if err == nil || err.Error() != c.want || !errors.Is(err, broken) || !errors.As(err, &e) {
			t.Errorf("%q: got %v, want %s", c.data, err, c.want)
		}
	}
}

// The same trace, however it is stored and however it arrives.
func TestSources(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":%d,"output_length":2,"hash_ids":[%d, %d],"session_id":"s%d"}`+"\n", i, 65+i%64, i, 7*i, i%1000)
	}
	text := b.String()
	half := strings.Index(text[len(text)/2:], "}") + len(text)/2 - 10
	show := func(path string, o Options) string {
		t.Helper()
		w, info, err := load(context.Background(), path, o)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		ids := 0
		for _, turn := range w.Turns {
			for _, id := range w.Prompts.AppendIDs(nil, turn.Leaf, 2) {
				ids += int(id)
			}
		}
		if int(info.Bytes) != len(text) {
			t.Errorf("%s: %d bytes of text, want %d", path, info.Bytes, len(text))
		}
		return fmt.Sprint(len(w.Turns), len(w.Sessions), ids, info.Lines, info.Rows, w.Turns[2999], w.Sessions[999])
	}
	want := show(write(t, "a.jsonl", []byte(text)), plain)
	stored := map[string][]byte{
		"plain": []byte(text),
		"gzip":  gz(t, text), "gzip members": gz(t, text[:half], text[half:], ""),
		"zstd": zst(t, text), "zstd frames": zst(t, text[:half], text[half:]),
	}
	for name, data := range stored {
		suffix := map[string]string{"gzip": ".GZ", "zstd": ".zst"}[strings.Fields(name)[0]]
		if got := show(write(t, "a.jsonl"+suffix, data), plain); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if got := show(write(t, "anything", data), plain); got != want {
			t.Errorf("%s under a plain name: got %s, want %s", name, got, want)
		}
		for _, r := range []io.Reader{bytes.NewReader(data), iotest.OneByteReader(bytes.NewReader(data)), iotest.DataErrReader(bytes.NewReader(data))} {
			o := plain
			o.Stdin = r
			if got := show(Stdin, o); got != want {
				t.Errorf("%s on standard input: got %s, want %s", name, got, want)
			}
		}
	}
}

func TestProgress(t *testing.T) {
	text := strings.Repeat(good+"\n", 5000)
	data := gz(t, text)
	path := write(t, "a.gz", data)
	var seen []int64
	o := plain
	o.Progress = func(read, total int64) {
		if total != int64(len(data)) {
			t.Errorf("total %d, want %d", total, len(data))
		}
		if len(seen) > 0 && read < seen[len(seen)-1] {
			t.Errorf("progress fell to %d after %v", read, seen)
		}
		seen = append(seen, read)
	}
	if _, info, err := load(context.Background(), path, o); err != nil || info.Read != int64(len(data)) {
		t.Errorf("read %d of %d, %v", info.Read, len(data), err)
	}
	if len(seen) < len(text)/chunk || seen[len(seen)-1] != int64(len(data)) {
		t.Errorf("progress %v, want a call per chunk up to %d", seen, len(data))
	}
	o.Stdin = strings.NewReader(good)
	o.Progress = func(_, total int64) {
		if total != -1 {
			t.Errorf("total of standard input: %d", total)
		}
	}
	if _, _, err := load(context.Background(), Stdin, o); err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	path := write(t, "a.jsonl", []byte(strings.Repeat(good+"\n", 10000)))
	ctx, cancel := context.WithCancel(context.Background())
	o := plain
	calls := 0
	o.Progress = func(int64, int64) { calls++; cancel() }
	if _, _, err := load(ctx, path, o); !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%v after %d chunks", err, calls)
	}
}

// Room is reserved by a guess; absurd guesses change nothing.
func TestReserve(t *testing.T) {
	short := strings.Repeat(`{"timestamp":0,"output_length":0,"hash_ids":[1]}`+"\n", 4000)
	long := and(`"x":"`+strings.Repeat("y", 5<<20)+`"`) + "\n"
	for _, text := range []string{short + long, long + short} {
		w, info, err := load(context.Background(), write(t, "a.jsonl", []byte(text)), plain)
		if err != nil || info.Rows != 4001 || len(w.Turns) != 4001 {
			t.Errorf("%d rows, %v", info.Rows, err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	id := 0
	for i := range 12000 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": %d, "output_length": 100, "hash_ids": [0`, i/3*1000, 15*64-17)
		for k := range 14 {
			if k >= i%10 {
				id++
			}
			fmt.Fprintf(&text, ", %d", id)
		}
		text.WriteString("]}\n")
	}
	path := filepath.Join(b.TempDir(), "a.jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := load(context.Background(), path, plain); err != nil {
			b.Fatal(err)
		}
	}
}

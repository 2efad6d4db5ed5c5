package cliutil

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"num_gpu_blocks", "block_size", "max_num_seqs", "engine", "dp_size"}
	cases := []struct{ word, want string }{
		{"num_gpu_block", "num_gpu_blocks"},
		{"blocksize", "block_size"},
		{"blokc_size", "block_size"},
		{"engien", "engine"},
		{"ENGINE", "engine"},
		{"dp-size", "dp_size"},
		{"foo", ""},
		{"", ""},
		{strings.Repeat("x", 5000), ""},
	}
	for _, c := range cases {
		got, ok := Nearest(c.word, known)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("Nearest(%.20q) = %q, %v; want %q", c.word, got, ok, c.want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := Quote("a\n\x1b[31m\"b"); got != `"a\n\x1b[31m\"b"` {
		t.Error(got)
	}
	if got := Quote("\xff"); got != `"\xff"` {
		t.Error(got)
	}
	long := strings.Repeat("é", 100)
	if got := Quote(long); len(got) > 2*maxQuoted || !strings.HasSuffix(got, `é"...`) {
		t.Error(got)
	}
}

// testdata/python_floats.txt holds floats as json.dumps of CPython 3.11
// prints them.
func TestAppendPythonFloat(t *testing.T) {
	data, err := os.ReadFile("testdata/python_floats.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(data))
	if len(lines) < 600 {
		t.Fatalf("%d floats", len(lines))
	}
	for _, want := range lines {
		x, err := strconv.ParseFloat(want, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendPythonFloat(nil, x)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		serde := string(AppendSerdeFloat([]byte("x"), x))[1:]
		if back, err := strconv.ParseFloat(serde, 64); err != nil || math.Float64bits(back) != math.Float64bits(x) {
			t.Errorf("%s does not round-trip as %s", want, serde)
		}
	}
}

func TestAppendSerdeFloat(t *testing.T) {
	for want, x := range map[string]float64{
		"0.0": 0, "-0.0": math.Copysign(0, -1), "1e-7": 1e-7, "0.00001": 1e-5, "1.5e-6": 1.5e-6, "9.5e-6": 9.5e-6,
		"1e16": 1e16, "1000000000000000.0": 1e15, "1.5e300": 1.5e300, "16.577347999999972": 16.577347999999972,
		"null": math.Inf(1), "5e-324": 5e-324,
	} {
		if got := string(AppendSerdeFloat(nil, x)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAppendJSONString(t *testing.T) {
	in := "qé\n\"\x01x/\\\t\r\b\f\x1f\u2028\x7f\xff"
	want := `"qé\n\"\u0001x/\\\t\r\b\f\u001f` + "\u2028\x7f\ufffd" + `"`
	if got := string(AppendJSONString(nil, in)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package compare

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const base = `{
  "num_requests": 2000, "duration_ms": 1000.5, "mean_ttft_ms": 10.0, "std_ttft_ms": 0.0, "wall_time_ms": 5.0,
  "kv_eviction_policy": "lru", "power_w": null, "g2_domains": [{"used_blocks": 3}]
}`

func parse(t *testing.T, path, text string) *Report {
	t.Helper()
	r, err := Parse(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func compare(t *testing.T, edit ...string) *Comparison {
	t.Helper()
	return Compare(parse(t, "a.json", base), parse(t, "b.json", strings.NewReplacer(edit...).Replace(base)))
}

func TestEqual(t *testing.T) {
	for _, edit := range [][]string{{}, {`"wall_time_ms": 5.0`, `"wall_time_ms": 7.0`}, {"10.0", "1e1"}, {"2000", "2000.0"}} {
		if c := compare(t, edit...); !c.Equal() {
			t.Errorf("%v: %+v", edit, c.Rows)
		}
	}
	for _, edit := range [][]string{{"10.0", "10.000000000000002"}, {"lru", "mru"}, {"null", "0"}, {`"used_blocks": 3`, `"used_blocks": 4`}, {`"std_ttft_ms": 0.0,`, ""}, {`"power_w"`, `"power"`}} {
		if c := compare(t, edit...); c.Equal() {
			t.Errorf("%v: equal", edit)
		}
	}
}

func TestTable(t *testing.T) {
	c := compare(t, "10.0", "12.5", "2000", "1000", `"std_ttft_ms": 0.0`, `"std_ttft_ms": 1.0`, `"wall_time_ms": 5.0`, `"wall_time_ms": 5.5`,
		"1000.5", "1000.5000000001", "lru", "mru", `"power_w": null, `, `"extra": 1, `)
	var b bytes.Buffer
	if err := c.WriteTable(&b, false); err != nil {
		t.Fatal(err)
	}
	const want = `Metric                       a.json           b.json      change
duration_ms                  1000.5  1000.5000000001  +1.0e-11 %
extra                             -                1           -
kv_eviction_policy            "lru"            "mru"           -
num_requests                  2,000            1,000    -50.00 %
power_w                        null                -           -
wall_time_ms (not compared)  5.0000           5.5000    +10.00 %
mean_ttft_ms                 10.000           12.500    +25.00 %
std_ttft_ms                       0           1.0000           -
1 of 9 values are equal
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	a, second := c.Only()
	if strings.Join(a, " ") != "power_w" || strings.Join(second, " ") != "extra" {
		t.Errorf("%v, %v", a, second)
	}
	b.Reset()
	if err := compare(t).WriteTable(&b, false); err != nil || b.String() != "8 of 8 values are equal\n" {
		t.Errorf("%v, %s", err, b.String())
	}
	b.Reset()
	if err := compare(t).WriteTable(&b, true); err != nil || strings.Count(b.String(), " =\n") != 8 {
		t.Errorf("%v, %s", err, b.String())
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := compare(t, "10.0", "12.5", "lru", "a\\\"é").WriteJSON(&b, false); err != nil {
		t.Fatal(err)
	}
	var got struct {
		A, B   string
		Equal  bool
		Values []struct {
			Key     string
			A, B    any
			Change  *float64
			Percent *float64 `json:"change_percent"`
			Counts  bool
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.A != "a.json" || got.Equal || len(got.Values) != 2 {
		t.Fatalf("%+v", got)
	}
	if v := got.Values[1]; v.Key != "mean_ttft_ms" || v.A != 10.0 || v.B != 12.5 || *v.Change != 2.5 || *v.Percent != 25 || !v.Counts {
		t.Errorf("%+v", v)
	}
	if v := got.Values[0]; v.B != `a"é` || v.Change != nil || v.Percent != nil {
		t.Errorf("%+v", v)
	}
}

func TestNoReports(t *testing.T) {
	for text, want := range map[string]string{
		``:                          "r.json:1: not JSON: EOF; ",
		"{\n\"a\": }":               "r.json:2: not JSON: invalid character '}' looking for beginning of value; ",
		"{\n\n":                     "r.json:3: not JSON: unexpected EOF; ",
		"{}\n{}":                    "r.json:2: not JSON: there is more after the first value; ",
		`[1]`:                       "r.json: is JSON, but no object; ",
		`{"num_requests": 5}`:       `r.json: has no number "duration_ms"; `,
		`{"num_requests": "5"}`:     `r.json: has no number "num_requests"; `,
		`{"num_requests": [1e999]}`: "r.json: num_requests[0] is 1e999, which no 64-bit float is; ",
	} {
		if _, err := Parse("r.json", []byte(text)); err == nil || err.Error() != want+accepted {
			t.Errorf("%q: %v, want %s", text, err, want+accepted)
		}
	}
	dir := t.TempDir()
	missing := filepath.Join(dir, "none.json")
	if _, err := Read(missing); err == nil || err.Error() != missing+": no such file; "+accepted {
		t.Error(err)
	}
	if _, err := Read(dir); err == nil || err.Error() != dir+": cannot be read: is a directory; "+accepted {
		t.Error(err)
	}
	path := filepath.Join(dir, "r.json")
	if err := os.WriteFile(path, []byte(base), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := Read(path); err != nil || len(r.values) != 8 {
		t.Errorf("%+v, %v", r, err)
	}
}

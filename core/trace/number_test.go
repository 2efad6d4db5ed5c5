package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// recorded are literals and the values the reference gave them, seen as
// arrival times. Many are not the nearest float64.
var recorded = []struct {
	text string
	want float64
}{
	{"1844674407370955161603e-40", 0x1.b38fb9daa78e5p-63},
	{"18446744073709551616.0e-25", 0x1.ef2d0f5da7dd8p-20},
	{"18446744073709551616.1e-40", 0x1.16c262777579cp-69},
	{"18446744073709551616.2e-25", 0x1.ef2d0f5da7dd8p-20},
	{"9e-290", 0x1.c11066de4747fp-961},
	{"40e-302", 0x1.124e63593f5e0p-998},
	{"6.4e-22", 0x1.82db34012b252p-71},
	{"90e-300", 0x1.e22dcaa2e1634p-991},
	{"25e-299", 0x1.4ed8b04671da4p-989},
	{"861e-293", 0x1.57af070c6bcd5p-964},
	{"456e-302", 0x1.86e2e72bfa4c6p-995},
	{"259e-304", 0x1.1c2e64e08e72ep-1002},
	{"13.5e-173", 0x1.0b1de8ce64378p-571},
	{"6802e-296", 0x1.5b89bed4dd631p-971},
	{"14.8e-283", 0x1.b828317947495p-937},
	{"1746e-310", 0x1.f6341c200746dp-1020},
	{"4673.3e-38", 0x1.f0f353aae748cp-115},
	{"6852.1e-226", 0x1.fb4282d033f48p-739},
	{"678403e-310", 0x1.7d1cd550a1d8ep-1011},
	{"2274450e-309", 0x1.8f4b1429ec371p-1006},
	{"72660136e-315", 0x1.a1fc6b0e1250bp-1021},
	{"77359.396e-60", 0x1.e597c1aadafc8p-184},
	{"52730127e-309", 0x1.2148b5762f962p-1001},
	{"11766531e-294", 0x1.caac959901c17p-954},
	{"571229723e-302", 0x1.d2fa663e66d12p-975},
	{"2068.6342e-311", 0x0.ee0051c9d695ap-1022},
	{"702809868e-298", 0x1.5eac8f98f2e39p-961},
	{"482581.857e-184", 0x1.907f0607f1854p-593},
	{"9492832576e-290", 0x1.b9200538dc82dp-931},
	{"46.34940896e-83", 0x1.c23530baab365p-271},
	{"88.834581533457e-72", 0x1.39ea0b95a5f23p-233},
	{"36310389423671226581", 0x1.f7e86accd6062p+64},
	{"600659654965520565.55", 0x1.0abf18c2a41d2p+59},
	{"146108957902640423216", 0x1.faead2c60458ap+66},
	{"709743470928745126.398", 0x1.3b307da54b8a6p+59},
	{"801394877832548525.3749", 0x1.63e40ca740da2p+59},
	{"85212453886.7639705e-156", 0x1.1065695bcfb09p-482},
	{"63848465035277521835.5389", 0x1.bb09a8553cd52p+65},
	{"4981373338201253120620.935", 0x1.0e0a7132a59f7p+72},
	{"9120841997239203417705.1043", 0x1.ee711c2032732p+72},
	{"959802423729.1502723637306032", 0x1.bef15d73624d0p+39},
	{"0.0000000000000000000000000000087", 0x1.60e9f7206ca0ep-97},
	{"23059095327981.4984257522346478061e-65", 0x1.61612df7cbe84p-172},
	{"0.000000000000000000000000031664113697288940065", 0x1.399610c284e60p-85},
	{"0.00000000000000000000000000000000000000000000000000000000000001928679722013565", 0x1.fbc8c19057d85p-206},
	{"1.4", 0x1.6666666666666p+0},
	{"23E+6", 0x1.5ef3c00000000p+24},
	{"9E+13", 0x1.476b081e80000p+46},
	{"38E+6", 0x1.21eac00000000p+25},
	{"48E+17", 0x1.0a741a4627800p+62},
	{"719.67674", 0x1.67d69f6a93f29p+9},
	{"4385807e-346", 0},
	{"2549446812109.6", 0x1.28cb6f90e6ccdp+41},
	{"69.99452411140458", 0x1.17fa64875643cp+6},
	{"3.50110221040e-263", 0x1.1a3a8381cb9c3p-872},
	{"3576073883845684147", 0x1.8d06220109636p+61},
	{"13.529898663831e-268", 0x1.6563798e50848p-887},
	{"699087200479573297664", 0x1.2f2e45474eba1p+69},
	{"2005480859555498322055", 0x1.b2de8d21174a2p+70},
	{"78199285981611454e-338", 0x0.000000000009ep-1022},
	{"184467440737095516604.6", 0x1.4000000000000p+67},
	{"962628421200678067e-291", 0x1.0aa09aa915586p-907},
	{"184467440737095516511.45", 0x1.4000000000000p+67},
	{"1844674407370955164873.1", 0x1.9000000000000p+70},
	{"184467440737095516222.947", 0x1.4000000000000p+67},
	{"184467440737095516713.804", 0x1.4000000000000p+67},
	{"565286927358324356427e-344", 0x0.0000000000001p-1022},
	{"207335739527354137832.6e-38", 0x1.31f93a4eb7125p-59},
	{"1889163.46767076926479637e-107", 0x1.527fe03f8bd4bp-335},
	{"16562819802.89972740753232688302e-169", 0x1.7492d06685fb9p-528},
	{"0.000000000000000000000000000000000000000000000000000070310211653762173941265", 0x1.af00168067bf6p-174},
}

func timestamp(t *testing.T, text string) (float64, Fault) {
	t.Helper()
	var p Parser
	var row Row
	f := p.Line([]byte(`{"hash_ids":[],"output_length":0,"timestamp":`+text+`}`), &row)
	return row.TimestampMs, f
}

func TestFloatsOfTheReference(t *testing.T) {
	rounded := 0
	for _, c := range recorded {
		for _, sign := range []string{"", "-"} {
			got, f := timestamp(t, sign+c.text)
			want := c.want
			if sign == "-" {
				want = -want
			}
			if f.Code != OK || math.Float64bits(got) != math.Float64bits(want) {
				t.Errorf("%s%s: got %x, fault %v, want %x", sign, c.text, got, f, want)
			}
		}
		if nearest, err := strconv.ParseFloat(c.text, 64); err == nil && nearest == c.want {
			rounded++
		}
	}
	if rounded == len(recorded) {
		t.Error("no literal tells the reference's rule from correct rounding")
	}
}

// Up to 15 digits and 10^22 the reference's rule is correct rounding.
func TestFloatsAreCorrectlyRoundedWhenShort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		digits := r.Uint64N(1_000_000_000_000_000)
		var text string
		switch r.IntN(4) {
		case 0:
			text = strconv.FormatUint(digits, 10)
		case 1:
			text = strconv.FormatFloat(float64(digits)/1000, 'f', 3, 64)
			if len(text) > 16 {
				continue
			}
		case 2:
			text = fmt.Sprintf("%de%+d", digits, r.IntN(45)-22)
		default:
			text = fmt.Sprintf("0.%015dE%d", digits, r.IntN(16)-7)
		}
		want, err := strconv.ParseFloat(text, 64)
		got, f := timestamp(t, text)
		if err != nil || f.Code != OK || got != want {
			t.Fatalf("%s: got %x, fault %v, want %x", text, got, f, want)
		}
	}
}

func TestFloatRange(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64
		ok   bool
	}{
		{"1e308", 1e308, true},
		{"0.1e309", 1e308, true},
		{"1e309", 0, false},
		{"1.7976931348623157e308", math.MaxFloat64, true},
		{"17976931348623157e292", 17976931348623157e292, true},
		{"17976931348623158e292", 0, false}, // fits if rounded correctly
		{"1.8e308", 0, false},
		{"-1e400", 0, false},
		{strings.Repeat("1", 400), 0, false},
		{"1" + strings.Repeat("0", 400) + "e-400", 1, true},
		{"0." + strings.Repeat("0", 400) + "1e401", 1, true},
		{"0.0e309", 0, true},
		{"0e99999999999", 0, true},
		{"1e99999999999", 0, false},
		{"0.1e2147483648", 0, false},
		{"-0.000e2147483648", math.Copysign(0, -1), true},
		{"5e-99999999999", 0, true},
		{"1e-400", 0, true},
		{"5e-324", 5e-324, true},
		{"-0", math.Copysign(0, -1), true},
	} {
		got, f := timestamp(t, c.text)
		if c.ok != (f.Code == OK) || c.ok && math.Float64bits(got) != math.Float64bits(c.want) {
			t.Errorf("%.40s: got %v, fault %v, want %v, %v", c.text, got, f, c.want, c.ok)
		}
		if !c.ok && f.Code != OutOfRange {
			t.Errorf("%.40s: fault %v, want OutOfRange", c.text, f)
		}
	}
}

func TestPowers(t *testing.T) {
	for n := int64(1); n <= 308; n++ {
		want, err := strconv.ParseFloat("1e"+strconv.FormatInt(n, 10), 64)
		if got := power(n); err != nil || got != want {
			t.Errorf("10^%d: got %x, want %x", n, got, want)
		}
	}
}

// Every digit count, every place of the list's end, every spacing.
func TestIntegerLists(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var p Parser
	var row Row
	for range 50000 {
		var ids []uint64
		var text strings.Builder
		space := []string{"", " ", "  ", "\t"}
		pad := func(b *strings.Builder) { b.WriteString(space[min(r.IntN(8), 3)]) }
		odd := r.IntN(3) == 0 // else all elements are spaced alike
		text.WriteString(`{"output_length":1,"hash_ids":[`)
		for k := range r.IntN(12) {
			if k > 0 {
				text.WriteByte(',')
				if !odd {
					text.WriteByte(' ')
				}
			}
			if odd {
				pad(&text)
			}
			id := r.Uint64() >> (r.IntN(16) * 4)
			if r.IntN(50) == 0 {
				id = math.MaxUint64
			}
			ids = append(ids, id)
			text.WriteString(strconv.FormatUint(id, 10))
			if odd {
				pad(&text)
			}
		}
		text.WriteByte(']')
		text.WriteByte('}')
		if f := p.Line([]byte(text.String()), &row); f.Code != OK {
			t.Fatalf("%s: %v", text.String(), f)
		}
		if fmt.Sprint(row.HashIDs) != fmt.Sprint(ids) {
			t.Fatalf("%s: got %v", text.String(), row.HashIDs)
		}
	}
}

// Each digit string is cut off, too great or has a zero in front exactly when
// strconv says so.
func TestIntegersOfEveryLength(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var p Parser
	var row Row
	for range 100000 {
		text := make([]byte, 1+r.IntN(22))
		for i := range text {
			text[i] = '0' + byte(r.IntN(10))
		}
		want, err := strconv.ParseUint(string(text), 10, 64)
		ok := err == nil && (text[0] != '0' || len(text) == 1)
		f := p.Line([]byte(`{"output_length":1,"hash_ids":[7, `+string(text)+`, 8]}`), &row)
		if ok != (f.Code == OK) || ok && row.HashIDs[1] != want {
			t.Fatalf("%s: fault %v, ids %v", text, f, row.HashIDs)
		}
		ok = ok && want <= math.MaxInt64
		f = p.Line([]byte(`{"hash_ids":[], "output_length":`+string(text)+`}`), &row)
		if ok != (f.Code == OK) || ok && uint64(row.OutputLength) != want {
			t.Fatalf("%s: fault %v, output_length %v", text, f, row.OutputLength)
		}
	}
}

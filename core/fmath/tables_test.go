package fmath

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite tables.go")

// toGrid rounds x to a multiple of 2^-n.
func toGrid(x float64, n int) float64 {
	return math.Ldexp(math.RoundToEven(math.Ldexp(x, n)), -n)
}

func wantLogCell(i int) logCell {
	start := uint64(logOffset) + uint64(i)<<(mantBits-logBits)
	from := math.Float64frombits(start)
	to := math.Float64frombits(start + 1<<(mantBits-logBits))
	inv := toGrid(2/(from+to), 12)
	if from == 1 || to == 1 {
		inv = 1
	}
	if inv == 1 {
		return logCell{inv: 1}
	}
	exact := refLog(bigOf(inv), math.Log(inv))
	exact.Neg(exact)
	v, _ := exact.Float64()
	hi := toGrid(v, 42)
	lo, _ := exact.Sub(exact, bigOf(hi)).Float64()
	return logCell{inv, hi, lo}
}

func wantExpCell(j int) expCell {
	ln2 := refLn2()
	arg := ln2.Mul(ln2, bigOf(float64(j)))
	arg.SetMantExp(arg, -expBits)
	exact := refExp(arg)
	hi, _ := exact.Float64()
	lo, _ := exact.Sub(exact, bigOf(hi)).Float64()
	return expCell{hi, lo}
}

func TestTables(t *testing.T) {
	if *update {
		writeTables(t)
		return
	}
	for i, got := range logTable {
		if want := wantLogCell(i); got != want {
			t.Errorf("logTable[%d] = %x, want %x", i, got, want)
		}
	}
	for j, got := range expTable {
		if want := wantExpCell(j); got != want {
			t.Errorf("expTable[%d] = %x, want %x", j, got, want)
		}
	}
}

func writeTables(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("package fmath\n\n// Written by go test -run TestTables -update; TestTables checks every number.\n\n")
	b.WriteString("var logTable = [1 << logBits]logCell{\n")
	for i := range 1 << logBits {
		c := wantLogCell(i)
		fmt.Fprintf(&b, "\t{%x, %x, %x},\n", c.inv, c.hi, c.lo)
	}
	b.WriteString("}\n\n// expTable[j] is 2^(j/128).\nvar expTable = [1 << expBits]expCell{\n")
	for j := range 1 << expBits {
		c := wantExpCell(j)
		fmt.Fprintf(&b, "\t{%x, %x},\n", c.hi, c.lo)
	}
	b.WriteString("}\n")
	if err := os.WriteFile("tables.go", b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestConstants proves the split constants from ln 2 itself.
func TestConstants(t *testing.T) {
	ln2 := refLn2()
	check := func(name string, got, want float64) {
		if got != want {
			t.Errorf("%s = %x, want %x", name, got, want)
		}
	}
	rest := new(big.Float).SetPrec(refPrec).Sub(ln2, bigOf(ln2Hi))
	lo, _ := rest.Float64()
	check("ln2Lo", ln2Lo, lo)
	check("ln2Hi on its grid", ln2Hi, toGrid(ln2Hi, 42))

	rest.SetMantExp(ln2, -expBits)
	rest.Sub(rest, bigOf(ln2x128A))
	rest.Sub(rest, bigOf(ln2x128B))
	lo, _ = rest.Float64()
	check("ln2x128C", ln2x128C, lo)
	for _, c := range []float64{ln2x128A, ln2x128B} {
		if math.Float64bits(c)&(1<<18-1) != 0 {
			t.Errorf("%x has more than 35 bits", c)
		}
	}
	scaled := new(big.Float).SetMantExp(ln2, 192)
	whole, _ := scaled.Int(nil)
	mask := new(big.Int).SetUint64(math.MaxUint64)
	for i, got := range wideLn2 {
		limb := new(big.Int).Rsh(whole, uint(64*i))
		if want := limb.And(limb, mask).Uint64(); got != want {
			t.Errorf("wideLn2[%d] = %#x, want %#x", i, got, want)
		}
	}
}

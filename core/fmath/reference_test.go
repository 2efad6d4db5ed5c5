package fmath

import (
	"math"
	"math/big"
)

// refPrec is the working precision of the reference in bits; results are good
// to about 40 bits less.
const refPrec = 260

func bigOf(x float64) *big.Float { return new(big.Float).SetPrec(refPrec).SetFloat64(x) }

// refExp is e^x by halving the argument, summing Taylor's series and squaring.
func refExp(x *big.Float) *big.Float {
	const halvings = 16
	r := new(big.Float).SetPrec(refPrec).Set(x)
	shift := max(0, r.MantExp(nil)) + halvings
	r.SetMantExp(r, -shift)
	sum, term := bigOf(1), bigOf(1)
	for i := 1; i <= 16; i++ {
		term.Mul(term, r)
		term.Quo(term, bigOf(float64(i)))
		sum.Add(sum, term)
	}
	for range shift {
		sum.Mul(sum, sum)
	}
	return sum
}

// halley improves an estimate of ln x: the number of good bits triples.
func halley(x, estimate *big.Float) *big.Float {
	e := refExp(estimate)
	num := new(big.Float).SetPrec(refPrec).Sub(x, e)
	den := new(big.Float).SetPrec(refPrec).Add(x, e)
	num.Quo(num, den)
	num.Add(num, num)
	return num.Add(num, estimate)
}

// refLog is ln x to about 155 bits, from the float64 estimate.
func refLog(x *big.Float, estimate float64) *big.Float { return halley(x, bigOf(estimate)) }

// refLn2 is ln 2 to all the reference's bits.
func refLn2() *big.Float { return halley(bigOf(2), refLog(bigOf(2), math.Ln2)) }

func refExpFloat(x float64) float64 {
	v, _ := refExp(bigOf(x)).Float64()
	return v
}

func refLogFloat(x float64) float64 {
	frac, exp := math.Frexp(x) // math.Log is wrong for subnormals on some targets
	v, _ := refLog(bigOf(x), math.Log(frac)+float64(exp)*math.Ln2).Float64()
	return v
}

func refLog1pFloat(x float64) float64 {
	sum := new(big.Float).SetPrec(2200).Add(bigOf(1), bigOf(x)) // exact
	v, _ := refLog(sum, math.Log1p(x)).Float64()
	return v
}

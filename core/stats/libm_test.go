package stats

import (
	"testing"

	"github.com/dryserve/dryserve/core/fmath"
)

// TestLibmExp holds what glibc 2.36 gave on amd64: every key between -20000
// and 20000 where it does not round correctly, then some where it does.
func TestLibmExp(t *testing.T) {
	scale := newSketchScale()
	for _, c := range []struct {
		key  int64
		want float64
	}{
		{-19453, 0x1.d40a3d9ad1330p-57},
		{-17747, 0x1.bb8dc2eeb135cp-52},
		{-17436, 0x1.9d17bb59d90cfp-51},
		{-16667, 0x1.e0c3ca4a5928dp-49},
		{-16275, 0x1.073ea5beb294ep-47},
		{-15029, 0x1.8dada49ed1565p-44},
		{-9960, 0x1.32dfe2ae54c64p-29},
		{-4244, 0x1.afdaaae7093a6p-13},
		{-3626, 0x1.7397514926773p-11},
		{-2892, 0x1.933a28e653680p-9},
		{-2828, 0x1.ca4a01c075dd2p-9},
		{-2094, 0x1.f14e6f7d4bdf2p-7},
		{608, 0x1.afd455701af5fp+1},
		{1916, 0x1.713d0f5c0c2f3p+5},
		{4139, 0x1.ec0a6440e3678p+11},
		{6378, 0x1.5280b953959d8p+18},
		{8076, 0x1.3bb3a0715c499p+23},
		{11117, 0x1.0e03abf2f43b6p+32},
		{11424, 0x1.f2ef4a5dc5acbp+32},
		{12922, 0x1.37eb02fb565e4p+37},
		{13071, 0x1.a4343e076b0e7p+37},
		{14585, 0x1.0f3d8c215cc35p+42},
		{14996, 0x1.348aceaff91c0p+43},
		{15345, 0x1.360b10ed851cap+44},
		{-6908, 0x1.0c4d88d158911p-20},
		{-1, 0x1.fefa1e2d85c11p-1},
		{0, 0x1.0000000000000p+0},
		{1, 0x1.0083340520083p+0},
		{607, 0x1.aef7753c3892dp+1},
		{1915, 0x1.708032e0984eep+5},
		{1917, 0x1.71fa4ca2b3ccep+5},
		{3454, 0x1.f41f9f78d409dp+9},
	} {
		if got := libmExp(c.key, fmath.Exp(float64(c.key)*(1/scale.perLn))); got != c.want {
			t.Errorf("key %d: got %x, want %x", c.key, got, c.want)
		}
	}
}

package sglang

import "testing"

// Engine notes §6, §6.1 step 9.
func TestRatio(t *testing.T) {
	r := newRatio(1)
	if r.now != 0.7 || r.least != 0.7*0.14 {
		t.Errorf("%+v", r)
	}
	for range 601 {
		r.fall()
	}
	if r.now != r.least {
		t.Errorf("after 601 passes %v, want %v", r.now, r.least)
	}
	r.retracted(3, 10, 139)
	if want := 70.0 / 140; r.now != want { // (10 + 3*20) / (139 + 1)
		t.Errorf("after a retraction %v, want %v", r.now, want)
	}
	r.retracted(1, 100, 110)
	if r.now != 1 {
		t.Errorf("%v, want at most 1", r.now)
	}
	if r = newRatio(0); r.now != 0 || r.least != 0 {
		t.Errorf("of nothing: %+v", r)
	}
	r.fall()
	if r.now != 0 {
		t.Errorf("nothing fell to %v", r.now)
	}
}

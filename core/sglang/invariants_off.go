//go:build !invariants

package sglang

const checked = false

func (e *Rank) check() {}

//go:build !invariants

package engine

func (e *Engine) check() {}

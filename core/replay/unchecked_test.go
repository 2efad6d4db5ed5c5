//go:build !invariants

package replay_test

const checked = false

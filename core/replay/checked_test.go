//go:build invariants

package replay_test

// checked: the plain engines look at their invariants after every step, which
// allocates.
const checked = true

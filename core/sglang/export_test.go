package sglang

// Checked tells that the invariants are checked, which allocates.
const Checked = checked

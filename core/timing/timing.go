// Package timing turns what a pass computes into how long it takes.
package timing

import "github.com/dryserve/dryserve/core/config"

// Model gives pass durations in milliseconds, already quantised to whole
// nanoseconds and scaled by the speed-up ratios, ready to be added to a clock.
type Model struct{ _ int }

// New builds the model of one rank. totalKVTokens is NumGPUBlocks*BlockSize.
func New(e config.Engine) Model { panic("contract") }

// Prefill is the duration of a batch of count prompts whose context after the
// pass sums to totalISL tokens, totalPrefix of which were there before.
func (m *Model) Prefill(count, totalISL, totalPrefix int) float64 { panic("contract") }

// Decode is the duration of decoding one token for each of batch sequences
// whose lengths sum to sumLen tokens.
func (m *Model) Decode(batch, sumLen int) float64 { panic("contract") }

// CanBeZero reports whether a pass that produces tokens may take no time.
func (m *Model) CanBeZero() bool { panic("contract") }

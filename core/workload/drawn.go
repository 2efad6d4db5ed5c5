package workload

// Draw says that prompts are not spelt by their hash ids but drawn.
func (b *Builder) Draw() { b.w.Drawn = true }

// AppendDrawn appends the first n tokens of the prompt that is drawn for turn
// i: each is the low half of a splitmix64 step from its turn and place, and
// never 0 (replay notes §4).
func AppendDrawn(dst []uint32, turn int32, n int) []uint32 {
	for j := range uint64(n) {
		z := (uint64(turn)<<32 ^ j) + 0x9E3779B97F4A7C15
		z ^= z >> 30
		z *= 0xBF58476D1CE4E5B9
		z ^= z >> 27
		z *= 0x94D049BB133111EB
		z ^= z >> 31
		dst = append(dst, max(uint32(z), 1))
	}
	return dst
}

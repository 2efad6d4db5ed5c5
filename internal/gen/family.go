package gen

import (
	"fmt"
	"slices"
)

// Families are the kinds of engine that FamilyCase makes.
func Families() []string { return []string{"vllm", "trtllm", "dp", "any"} }

// FamilyCase is Case(seed) for another kind of engine: TensorRT-LLM, two to
// four data-parallel ranks, or any mixture. Family vllm is Case itself.
func FamilyCase(seed uint64, family string) (*ReplayCase, error) {
	if !slices.Contains(Families(), family) {
		return nil, fmt.Errorf("gen: there is no family %q", family)
	}
	c := Case(seed)
	if family == "vllm" {
		return c, nil
	}
	c.Name = fmt.Sprintf("%s-%d", family, seed)
	r := NewRand(seed ^ 0xF0A1171E5)
	mix := family == "any"
	e := c.Engine()
	if family == "trtllm" || mix && r.Chance(0.5) {
		e["backend"] = "trtllm"
	}
	if family == "dp" || mix && r.Chance(0.5) {
		object(c.Kwargs, "extra_engine_args")["dp_size"] = r.Between(2, 4)
	}
	return c, nil
}

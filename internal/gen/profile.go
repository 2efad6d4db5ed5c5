package gen

import "slices"

// ProfileFile is the name of a case's profile, which its engine arguments
// name relative to the case's folder.
const ProfileFile = "profile.npz"

// profiled gives the case durations from a random profile.
func (c *ReplayCase) profiled(r *Rand) {
	c.Engine()["timing_model"] = map[string]any{
		"type": "external", "provider": "dynamo_profile", "config": map[string]any{"path": ProfileFile},
	}
	c.Profile = profile(r)
}

// profile is a random profile: small and odd axes, which requests of the
// cases are inside of, below and above, and durations that rise, fall, stay or
// jump, negative ones among them. One in about thirty breaks a rule.
func profile(r *Rand) []byte {
	tokens := axis(r, pick(r, 4, 40, 300))
	ttft := durations(r, len(tokens))
	kv, context := axis(r, pick(r, 8, 60, 600)), axis(r, pick(r, 4, 30, 200))
	var itl []float64
	switch r.Intn(3) {
	case 0: // a plane
		base, perToken, perContext := value(r), value(r)/64, value(r)/64
		for _, x := range kv {
			for _, y := range context {
				itl = append(itl, base+float64(perToken*x)+float64(perContext*y))
			}
		}
	case 1: // rising rows
		for i := range kv {
			for _, y := range durations(r, len(context)) {
				itl = append(itl, y+float64(i))
			}
		}
	default:
		for range kv {
			itl = append(itl, durations(r, len(context))...)
		}
	}
	l := npyLayout{version: byte(r.Between(1, 3)), suffix: !r.Chance(0.1), deflate: r.Chance(0.3), padded: r.Chance(0.7)}
	big := r.Chance(0.1)
	plane := floats("decode_itl", []int{len(kv), len(context)}, itl, big)
	if r.Chance(0.2) {
		plane = floats("decode_itl", plane.shape, transposed(itl, len(kv)), big)
		plane.fortran = true
	}
	arrays := []npyArray{
		floats("prefill_isl", []int{len(tokens)}, tokens, big), floats("prefill_ttft_ms", []int{len(ttft)}, ttft, false),
		floats("decode_active_kv_tokens", []int{len(kv)}, kv, false), floats("decode_context_length", []int{len(context)}, context, big), plane,
	}
	if r.Chance(0.3) {
		arrays = append(arrays, npyArray{name: "note", descr: "<U2", shape: []int{1}, data: make([]byte, 8)})
	}
	if r.Chance(0.5) {
		shuffle(r, arrays)
	}
	if r.Chance(0.03) {
		arrays = spoilProfile(r, arrays)
	}
	return npzArchive(arrays, l)
}

// axis is two to seven rising values with steps up to about step.
func axis(r *Rand, step int) []float64 {
	v := []float64{pick(r, 0, 1, float64(r.Between(0, step)), float64(r.Between(-step, step))/8)}
	for n := r.Between(1, 6); n > 0; n-- {
		v = append(v, v[len(v)-1]+pick(r, 1, float64(r.Between(1, step)), float64(r.Between(1, 8*step))/8, 0.1+float64(float64(step)*r.Float64())))
	}
	return v
}

// value is a duration in ms.
func value(r *Rand) float64 {
	return pick(r, 0, 1, 2, 7, 0.5, 12.345678, 1e-7, 0.1, float64(r.Between(1, 4000))/128, float64(30*r.Float64()))
}

// durations are n values that rise, fall, stay or jump.
func durations(r *Rand, n int) []float64 {
	v := make([]float64, n)
	at, kind := value(r), r.Intn(5)
	for i := range v {
		v[i] = at
		switch kind {
		case 0, 1:
			at += value(r)
		case 2:
			at -= value(r)
		case 3:
			at = value(r) - float64(r.Between(0, 4))
		}
	}
	return v
}

func transposed(v []float64, rows int) []float64 {
	cols := len(v) / rows
	out := make([]float64, 0, len(v))
	for j := range cols {
		for i := range rows {
			out = append(out, v[i*cols+j])
		}
	}
	return out
}

// spoilProfile breaks one rule of the arrays that both programs have.
func spoilProfile(r *Rand, arrays []npyArray) []npyArray {
	i := slices.IndexFunc(arrays, func(a npyArray) bool { return a.name == "prefill_isl" })
	a := &arrays[i]
	switch r.Intn(6) {
	case 0:
		return slices.Delete(arrays, i, i+1)
	case 1:
		a.descr = "<i8"
	case 2: // the first two values change places
		copy(a.data, slices.Concat(a.data[8:16], a.data[:8]))
	case 3:
		a.data, a.shape = a.data[:8], []int{1}
	case 4:
		a.shape = []int{1, a.shape[0]}
	case 5:
		a.data = a.data[:len(a.data)-3]
	}
	return arrays
}

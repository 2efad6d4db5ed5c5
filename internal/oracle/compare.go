package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Up to this many samples the reference sums a distribution in the order its
// percentile selection leaves behind, so the last bits of std depend on that
// algorithm (replay notes, "Sharpened", §9.1).
const permutedSamples = 4096

// stdTolerance is the relative difference granted to such a std.
const stdTolerance = 1e-12

// permutedStds maps each std with that tolerance to the count of its samples.
// TTST has none of its own: its requests are those with a TPOT.
var permutedStds = map[string]string{
	"std_ttft_ms":        "num_ttft_samples",
	"std_ttst_ms":        "num_tpot_samples",
	"std_tpot_ms":        "num_tpot_samples",
	"std_e2e_latency_ms": "num_e2e_latency_samples",

	"std_trajectory_e2e_latency_ms": "completed_trajectories",
}

// wallClock are the fields that say how long the simulation itself took.
var wallClock = []string{"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s"}

// ownFields are the fields our reports add to the reference's.
var ownFields = []string{"rejected_requests", "failed_requests", "cancelled_requests", "unfinished_requests"}

// endFields count every request that arrived by how it ended.
var endFields = append([]string{"completed_requests"}, ownFields...)

// Compare lists in words how ours differs from the reference's answer; nil
// means they agree.
func Compare(reference, ours Answer) []string {
	if reference.Outcome != ours.Outcome || ours.Outcome == Crash {
		return []string{fmt.Sprintf("the reference %s, ours %s", outcomeText(reference), outcomeText(ours))}
	}
	if reference.Outcome == DeadEnd && inFlight(reference.Error) != inFlight(ours.Error) {
		return []string{fmt.Sprintf("the reference %s, ours %s", outcomeText(reference), outcomeText(ours))}
	}
	if reference.Outcome != Finished {
		return nil
	}
	var diffs []string
	if routed(reference) {
		diffs = compareReports(reference.Report, ours.Report, sameShuffled)
	} else {
		diffs = CompareReports(reference.Report, ours.Report)
	}
	diffs = append(diffs, compareRequests(reference.Requests, ours.Requests)...)
	diffs = append(diffs, compareLists("tick", reference.Ticks, ours.Ticks)...)
	diffs = append(diffs, compareLists("operation", reference.Lifecycle, ours.Lifecycle)...)
	return append(diffs, compareLists("sample", reference.Telemetry, ours.Telemetry)...)
}

// level rounds the variances of what passes worked on, which the reference sums
// in the order of random identities (engine notes §10.1), to nine digits. In a run
// with two pools so is that of destinations that wait, which is not random: how the
// reference comes to its last bit is not known (docs/scaling.md, Known differences).
func level(v any, pools bool) any {
	keys := []string{"var_prefill_length", "var_decode_kv_tokens"}
	if pools {
		keys = append(keys, "var_queued_decode_kv_tokens")
	}
	snapshots, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(snapshots))
	for i, s := range snapshots {
		m, ok := s.(map[string]any)
		if !ok {
			return v
		}
		c := maps.Clone(m)
		for _, key := range keys {
			if x, ok := c[key].(float64); ok {
				c[key] = strconv.FormatFloat(x, 'e', 8, 64)
			}
		}
		out[i] = c
	}
	return out
}

// compareLists compares objects in their order and tells of the first that
// differs what differs in it.
func compareLists(name string, reference, ours []map[string]any) []string {
	for i := range min(len(reference), len(ours)) {
		var diffs []string
		prefillers := reference[i]["total_prefill_count"]
		pools := prefillers != nil && fmt.Sprint(prefillers) != "0"
		for _, key := range slices.Sorted(maps.Keys(reference[i])) {
			if got, ok := ours[i][key]; !ok || !same(level(reference[i][key], pools), level(got, pools)) {
				diffs = append(diffs, fmt.Sprintf("%s %d %s: reference %s, ours %s", name, i, key, show(reference[i][key]), show(got)))
			}
		}
		if len(ours[i]) > len(reference[i]) {
			diffs = append(diffs, fmt.Sprintf("%s %d: ours says more: %s", name, i, show(ours[i])))
		}
		if diffs != nil {
			return diffs
		}
	}
	if len(reference) != len(ours) {
		return []string{fmt.Sprintf("%ss: the reference has %d, ours %d", name, len(reference), len(ours))}
	}
	return nil
}

var inFlightCount = regexp.MustCompile(`with (\d+) in-flight`)

// inFlight is the number of requests a dead end's message speaks of.
func inFlight(text string) string {
	if m := inFlightCount.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func outcomeText(a Answer) string {
	if a.Error == "" {
		return a.Outcome.String()
	}
	return fmt.Sprintf("%s (%s)", a.Outcome, a.Error)
}

// CompareReports lists in words how our report differs from the reference's,
// every field both ways but those of the wall clock.
func CompareReports(reference, ours map[string]any) []string {
	return compareReports(reference, ours, sameField)
}

func compareReports(reference, ours map[string]any, same func(key string, want, got any, report map[string]any) bool) []string {
	var diffs []string
	for _, key := range slices.Sorted(maps.Keys(reference)) {
		if slices.Contains(wallClock, key) {
			continue
		}
		want := reference[key]
		got, ok := ours[key]
		switch {
		case !ok:
			diffs = append(diffs, fmt.Sprintf("report.%s: reference %s, ours lacks it", key, show(want)))
		case !same(key, want, got, reference):
			diffs = append(diffs, fmt.Sprintf("report.%s: reference %s, ours %s", key, show(want), show(got)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		_, known := reference[key]
		if !known && !slices.Contains(ownFields, key) && !slices.Contains(wallClock, key) {
			diffs = append(diffs, fmt.Sprintf("report.%s: reference lacks it, ours %s", key, show(ours[key])))
		}
	}
	return append(diffs, conservation(ours)...)
}

// conservation checks that every request that arrived is counted once.
func conservation(report map[string]any) []string {
	counted := 0.0
	for _, key := range endFields {
		n, ok := report[key].(float64)
		if !ok {
			return []string{fmt.Sprintf("report.%s: ours lacks it", key)}
		}
		counted += n
	}
	if arrived, _ := report["num_requests"].(float64); arrived != counted {
		return []string{fmt.Sprintf("report: %v requests arrived and %v are counted by how they ended", arrived, counted)}
	}
	return nil
}

func sameField(key string, want, got any, report map[string]any) bool {
	if same(want, got) {
		return true
	}
	samples, ok := permutedStds[key]
	if !ok {
		return false
	}
	n, _ := report[samples].(float64)
	w, wok := want.(float64)
	g, gok := got.(float64)
	if n > permutedSamples || !wok || !gok {
		return false
	}
	// The deviation of almost equal samples is itself rounding noise of their
	// mean, so what a sum of n in another order may lose is granted as well.
	mean, _ := report["mean"+strings.TrimPrefix(key, "std")].(float64)
	return math.Abs(w-g) <= max(stdTolerance*max(math.Abs(w), math.Abs(g)), max(n, 8)*0x1p-53*math.Abs(mean))
}

// routed reports whether a KV router has placed the requests of an answer. Its
// report is from the run that captured them, whose sums are in the order of
// random identities.
func routed(a Answer) bool {
	for _, r := range a.Requests {
		if history, _ := r["routing_history"].([]any); len(history) > 0 {
			went, _ := history[0].(map[string]any)
			return went["selected_overlap_blocks"] != nil
		}
	}
	return false
}

// sameShuffled is sameField where every mean and deviation is a sum of at most
// permutedSamples in another order.
func sameShuffled(key string, want, got any, report map[string]any) bool {
	if sameField(key, want, got, report) {
		return true
	}
	w, wok := want.(float64)
	g, gok := got.(float64)
	if !wok || !gok || !strings.HasPrefix(key, "mean_") && !strings.HasPrefix(key, "std_") {
		return false
	}
	mean, _ := report["mean"+strings.TrimPrefix(key, "std")].(float64)
	return math.Abs(w-g) <= max(stdTolerance*max(math.Abs(w), math.Abs(g)), permutedSamples*0x1p-53*math.Abs(mean))
}

// same compares decoded JSON, numbers bit for bit.
func same(a, b any) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, same)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, same)
	}
	return a == b
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// compareRequests compares the records as multisets: the order of equal times
// follows random identities in the reference.
func compareRequests(reference, ours []map[string]any) []string {
	want, got := canonical(reference), canonical(ours)
	var missing, extra []string
	for i, j := 0, 0; i < len(want) || j < len(got); {
		switch {
		case j == len(got) || (i < len(want) && want[i] < got[j]):
			missing = append(missing, want[i])
			i++
		case i == len(want) || got[j] < want[i]:
			extra = append(extra, got[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	if len(missing)+len(extra) == 0 {
		return nil
	}
	diffs := []string{fmt.Sprintf("requests: %d of the reference's %d records have no equal among our %d",
		len(missing), len(want), len(got))}
	const shown = 3
	for _, line := range missing[:min(shown, len(missing))] {
		diffs = append(diffs, "only the reference: "+line)
	}
	for _, line := range extra[:min(shown, len(extra))] {
		diffs = append(diffs, "only ours: "+line)
	}
	return diffs
}

// canonical is the sorted text of the records as Trim leaves them. Go writes
// each float64 as its shortest exact decimal, so equal text is equal bits.
func canonical(records []map[string]any) []string {
	lines := make([]string, len(records))
	for i, r := range records {
		lines[i] = show(Trim(r))
	}
	slices.Sort(lines)
	return lines
}

// Trim copies a record without what two runs of the reference do not share,
// the random uuid, and without what says nothing: null fields and empty lists.
func Trim(record map[string]any) map[string]any {
	out := make(map[string]any, len(record))
	for key, value := range record {
		list, isList := value.([]any)
		if value != nil && key != "uuid" && !(isList && len(list) == 0) {
			out[key] = value
		}
	}
	return out
}

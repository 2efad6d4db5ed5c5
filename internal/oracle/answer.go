package oracle

import "strings"

// Outcome is how a run ended.
type Outcome uint8

// The outcomes. Refused is bad input found before or while reading; DeadEnd
// is the reference's abort when nothing can happen any more; Nobody its abort
// when a request finds no worker; NoEnd is a run that used up its time; Crash is
// a process or panic nobody asked for.
const (
	Finished Outcome = iota
	Refused
	DeadEnd
	Nobody
	NoEnd
	Crash
)

func (o Outcome) String() string {
	return [...]string{"finished", "refused its input", "met a dead end", "found no worker", "did not end", "crashed"}[o]
}

// Answer is what one side says to a case. Report and Requests are decoded
// JSON objects, present only when Outcome is Finished.
type Answer struct {
	Outcome  Outcome
	Error    string
	Report   map[string]any
	Requests []map[string]any
	Watched
}

// Watched is what is known of a run with a policy, or with samples, besides:
// what the policy was told, what happened to the workers, the samples.
type Watched struct {
	Ticks     []map[string]any `json:"ticks,omitempty"`
	Lifecycle []map[string]any `json:"lifecycle,omitempty"`
	Telemetry []map[string]any `json:"telemetry,omitempty"`
}

// classify sorts a reference error by its text.
func classify(text string) Outcome {
	if strings.Contains(text, "no active workers") || strings.Contains(text, "no endpoints available") {
		return Nobody
	}
	for _, mark := range []string{"effect-free zero-duration pass", "reached a dead end"} {
		if strings.Contains(text, mark) {
			return DeadEnd
		}
	}
	return Refused
}

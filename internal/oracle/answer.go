package oracle

import "strings"

// Outcome is how a run ended.
type Outcome uint8

// The outcomes. Refused is bad input found before or while reading; DeadEnd
// is the reference's abort when nothing can happen any more; NoEnd is a run
// that used up its time; Crash is a process or panic nobody asked for.
const (
	Finished Outcome = iota
	Refused
	DeadEnd
	NoEnd
	Crash
)

func (o Outcome) String() string {
	return [...]string{"finished", "refused its input", "met a dead end", "did not end", "crashed"}[o]
}

// Answer is what one side says to a case. Report and Requests are decoded
// JSON objects, present only when Outcome is Finished.
type Answer struct {
	Outcome  Outcome
	Error    string
	Report   map[string]any
	Requests []map[string]any
}

// classify sorts a reference error by its text.
func classify(text string) Outcome {
	for _, mark := range []string{"effect-free zero-duration pass", "reached a dead end"} {
		if strings.Contains(text, mark) {
			return DeadEnd
		}
	}
	return Refused
}

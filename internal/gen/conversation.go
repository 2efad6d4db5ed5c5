package gen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// TraceBlockTokens is the tokens one hash id of a conversation trace stands for.
const TraceBlockTokens = 512

const (
	maxPromptTokens = 120_000 // the context window: older talk is not dropped, growth stops
	maxReplyTokens  = 2_000
	maxSystemBlocks = 12
	openLimit       = 400 // conversations that may still go on; the oldest leave first
	followUpChance  = 0.6 // an arrival continues an open conversation
)

// ConversationConfig shapes a conversation trace.
type ConversationConfig struct {
	Requests int
	Seed     uint64
	Rate     float64 // mean arrivals per second
	Groups   int     // distinct system prompts
}

// check names the first field that cannot be used.
func (c ConversationConfig) check() error {
	switch {
	case c.Requests < 0:
		return fmt.Errorf("requests is %d; it must not be negative", c.Requests)
	case !(c.Rate > 0) || c.Rate > 1e9:
		return fmt.Errorf("rate is %v; it must be above 0 and at most 1e9 requests per second", c.Rate)
	case c.Groups < 1:
		return fmt.Errorf("groups is %d; there must be at least one", c.Groups)
	}
	return nil
}

// dialogue is an open conversation: the ids of its complete blocks and the
// tokens said so far.
type dialogue struct {
	ids    []uint64
	tokens int
}

// Conversation makes a multi-turn chat trace and hands its rows to yield in
// arrival order. Each turn repeats everything said before and adds a message;
// conversations of one group begin with the same system prompt. The mean
// prompt is near 10,700 tokens and the mean reply near 300, as in published
// chat traces. A row's slices belong to yield.
func Conversation(c ConversationConfig, yield func(Row) error) error {
	if err := c.check(); err != nil {
		return err
	}
	r := NewRand(c.Seed)
	systems := systemPrompts(r, c.Groups)
	next := uint64(c.Groups * maxSystemBlocks) // first id no system prompt has
	var open []dialogue
	clockMs := 0.0
	for range c.Requests {
		clockMs += float64(r.Exp()*1000) / c.Rate
		var d *dialogue
		if len(open) > 0 && r.Chance(followUpChance) {
			// The later of two draws: recent conversations go on more often.
			d = &open[max(r.Intn(len(open)), r.Intn(len(open)))]
			d.tokens += int(r.LogNormal(6.2, 1.1))
		} else {
			if len(open) == openLimit {
				open = slices.Delete(open, 0, 1)
			}
			system := systems[r.Intn(len(systems))]
			open = append(open, dialogue{ids: slices.Clone(system), tokens: len(system) * TraceBlockTokens})
			d = &open[len(open)-1]
			d.tokens += 1 + int(r.LogNormal(8, 1.2))
		}
		d.tokens = min(d.tokens, maxPromptTokens)
		reply := min(1+int(r.LogNormal(5.3, 0.9)), maxReplyTokens)
		next = d.cover(next)
		err := yield(Row{
			Timestamp:    ptr(float64(int64(clockMs))),
			InputLength:  ptr(int64(d.tokens)),
			OutputLength: ptr(int64(reply)),
			HashIDs:      slices.Clone(d.ids),
		})
		if err != nil {
			return err
		}
		d.hear(reply)
	}
	return nil
}

// WriteConversation writes the trace to a file. It writes beside the final name
// and renames, so a failed run leaves nothing half-written.
func WriteConversation(path string, c ConversationConfig) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	b := bufio.NewWriter(f)
	enc := json.NewEncoder(b)
	if err := Conversation(c, func(row Row) error { return enc.Encode(&row) }); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// systemPrompts gives each group the ids of its own system prompt.
func systemPrompts(r *Rand, groups int) [][]uint64 {
	prompts := make([][]uint64, groups)
	for g := range prompts {
		for j := range pick(r, 2, 4, 8, maxSystemBlocks) {
			prompts[g] = append(prompts[g], uint64(g*maxSystemBlocks+j))
		}
	}
	return prompts
}

// cover gives every block of the conversation an id, new ones from next on,
// and returns the first unused id.
func (d *dialogue) cover(next uint64) uint64 {
	for len(d.ids)*TraceBlockTokens < d.tokens {
		d.ids = append(d.ids, next)
		next++
	}
	return next
}

// hear appends the reply. It fills up the last block, so a partial block loses
// its id: the longer block is another one.
func (d *dialogue) hear(reply int) {
	d.ids = d.ids[:d.tokens/TraceBlockTokens]
	d.tokens += reply
}

func ptr[T any](v T) *T { return &v }

package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/dryserve/dryserve/host/native/live/answer"
)

// body is what counts of a request. Sampling cannot change a simulated answer:
// temperature and its like are checked for their type and range, and that is all.
type body struct {
	Model               *string         `json:"model"`
	Prompt              json.RawMessage `json:"prompt"`
	Messages            []message       `json:"messages"`
	Tools               json.RawMessage `json:"tools"`
	MaxTokens           *int64          `json:"max_tokens"`
	MaxCompletionTokens *int64          `json:"max_completion_tokens"`
	MinTokens           *int64          `json:"min_tokens"`
	N                   *int64          `json:"n"`
	BestOf              *int64          `json:"best_of"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	PresencePenalty     *float64        `json:"presence_penalty"`
	FrequencyPenalty    *float64        `json:"frequency_penalty"`
	Seed                *int64          `json:"seed"`
	Stop                json.RawMessage `json:"stop"`
	StopTokenIDs        []uint32        `json:"stop_token_ids"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	Stream              bool            `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Echo     bool            `json:"echo"`
	Suffix   *string         `json:"suffix"`
	Logprobs json.RawMessage `json:"logprobs"`
	NVExt    *struct {
		Annotations []string `json:"annotations"`
		IgnoreEOS   bool     `json:"ignore_eos"`
	} `json:"nvext"`
}

// call is a request that is understood.
type call struct {
	kind      kind
	prompts   [][]uint32
	echoes    []string // by prompt, if the answer begins with it
	n         int
	maxTokens int // 0: not said
	minTokens int
	stops     []string
	ends      []uint32 // token ids that end an answer
	seed      *int64
	record    string // key of the recorded answer that is wanted
	stream    bool
	usage     bool // at the end of a stream
}

// kind is what is asked for.
type kind uint8

const (
	completions kind = iota
	chats
)

// maxChoices bounds how many answers one request may have.
const maxChoices = 128

// read reads and checks a request.
func (s *Server) read(w http.ResponseWriter, r *http.Request, k kind) (*call, failure) {
	limit := http.NewResponseController(w)
	_ = limit.SetReadDeadline(time.Now().Add(s.Patience)) // a recorder has none
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.MaxBodyBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, failure{http.StatusRequestEntityTooLarge, invalid, "", "", "the body has more than " + string(appendInt(nil, large.Limit)) + " bytes; up to so many are accepted"}
	case err != nil:
		return nil, wrong("", "the body cannot be read to its end")
	}
	_ = limit.SetReadDeadline(time.Time{}) // else the server would wait for the rest of the body
	return s.parse(text, k)
}

// parse is read for a body in memory.
func (s *Server) parse(text []byte, k kind) (*call, failure) {
	var b body
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, wrong("", "the body is empty; a JSON object is accepted")
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, notBody(err)
	}
	if b.Model == nil {
		return nil, wrong("model", "model is missing; %s is accepted", short(s.Model))
	}
	if *b.Model != s.Model {
		return nil, noModel(*b.Model)
	}
	c := &call{kind: k, n: 1, seed: b.Seed, stream: b.Stream, stops: nil}
	if f := b.checkRanges(); f.failed() {
		return nil, f
	}
	if f := b.checkAbsent(k); f.failed() {
		return nil, f
	}
	if f := b.lengths(c); f.failed() {
		return nil, f
	}
	var f failure
	if c.stops, f = stops(b.Stop); f.failed() {
		return nil, f
	}
	if !b.IgnoreEOS && !(b.NVExt != nil && b.NVExt.IgnoreEOS) {
		c.ends = append(c.ends, s.Ends...)
	}
	c.ends = append(c.ends, b.StopTokenIDs...)
	if b.NVExt != nil {
		for _, a := range b.NVExt.Annotations {
			if key, ok := bytes.CutPrefix([]byte(a), []byte(answer.Annotation)); ok {
				c.record = string(key)
			}
		}
	}
	c.usage = b.StreamOptions != nil && b.StreamOptions.IncludeUsage
	if k == chats {
		f = s.chat(&b, c)
	} else {
		f = s.prompts(&b, c)
	}
	if !f.failed() && len(c.prompts)*c.n > maxChoices {
		f = wrong("n", "the request asks for %d answers; up to %d are accepted", len(c.prompts)*c.n, maxChoices)
	}
	return c, f
}

// notBody words an error of the decoder.
func notBody(err error) failure {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			return wrong("", "the body is of the JSON type %s; an object is accepted", kind.Value)
		}
		return wrong(kind.Field, "%s is of the JSON type %s; %s is accepted", kind.Field, kind.Value, accepted(kind.Type))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return wrong("", "the body is not JSON: %v, at byte %d; an object is accepted", err, syntax.Offset)
	}
	return wrong("", "the body is not JSON; an object is accepted")
}

func accepted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int64, reflect.Uint32:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// checkRanges checks numbers that otherwise mean nothing here.
func (b *body) checkRanges() failure {
	for _, x := range []struct {
		name      string
		value     *float64
		low, high float64
		words     string
	}{
		{"temperature", b.Temperature, 0, 2, "a number from 0 to 2"}, {"top_p", b.TopP, 0, 1, "a number from 0 to 1"},
		{"presence_penalty", b.PresencePenalty, -2, 2, "a number from -2 to 2"}, {"frequency_penalty", b.FrequencyPenalty, -2, 2, "a number from -2 to 2"},
	} {
		if x.value != nil && !(*x.value >= x.low && *x.value <= x.high) {
			return wrong(x.name, "%s is %v; %s is accepted", x.name, *x.value, x.words)
		}
	}
	return failure{}
}

// checkAbsent refuses what is not simulated, by name.
func (b *body) checkAbsent(k kind) failure {
	if l := string(b.Logprobs); b.Logprobs != nil && l != "null" && l != "false" {
		return wrong("logprobs", "logprobs are not simulated; leave logprobs out")
	}
	if b.Suffix != nil {
		return wrong("suffix", "suffix is not simulated; leave it out")
	}
	if b.Echo && k == chats {
		return wrong("echo", "echo is for completions; leave it out")
	}
	if b.BestOf != nil && *b.BestOf != 1 && (b.N == nil || *b.BestOf != *b.N) {
		return wrong("best_of", "best_of is %d; n, or nothing, is accepted", *b.BestOf)
	}
	return failure{}
}

// lengths reads how much is asked for.
func (b *body) lengths(c *call) failure {
	name, most := "max_tokens", b.MaxTokens
	if b.MaxCompletionTokens != nil {
		if most != nil && *most != *b.MaxCompletionTokens {
			return wrong("max_tokens", "max_tokens is %d and max_completion_tokens is %d; one of them is accepted", *most, *b.MaxCompletionTokens)
		}
		name, most = "max_completion_tokens", b.MaxCompletionTokens
	}
	if most != nil {
		if *most < 1 || *most > 1<<31 {
			return wrong(name, "%s is %d; a whole number from 1 on is accepted", name, *most)
		}
		c.maxTokens = int(*most)
	}
	if b.MinTokens != nil {
		if *b.MinTokens < 0 || c.maxTokens > 0 && *b.MinTokens > int64(c.maxTokens) {
			return wrong("min_tokens", "min_tokens is %d; a whole number from 0 to max_tokens is accepted", *b.MinTokens)
		}
		c.minTokens = int(min(*b.MinTokens, 1<<31))
	}
	if b.N != nil {
		if *b.N < 1 || *b.N > maxChoices {
			return wrong("n", "n is %d; a whole number from 1 to %d is accepted", *b.N, maxChoices)
		}
		c.n = int(*b.N)
	}
	return failure{}
}

// stops reads the strings that end an answer: one or a list.
func stops(v json.RawMessage) ([]string, failure) {
	if v == nil || string(v) == "null" {
		return nil, failure{}
	}
	var one string
	var list []string
	if json.Unmarshal(v, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(v, &list) != nil {
		return nil, wrong("stop", "stop is %s; a string or a list of strings is accepted", short(string(v)))
	}
	for _, s := range list {
		if s == "" {
			return nil, wrong("stop", "stop has an empty string; strings of at least one character are accepted")
		}
	}
	return list, failure{}
}

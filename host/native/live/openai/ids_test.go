package openai

import (
	"encoding/json"
	"slices"
	"testing"
)

// The fast reader of token ids reads what the decoder reads, and leaves the rest
// to it.
func TestTokenIDs(t *testing.T) {
	for text, want := range map[string][]uint32{
		"[1]": {1}, "[0,4294967295]": {0, 4294967295}, "[ 10 ,\n20\t, 3 ]": {10, 20, 3}, "[123456,7,8,9,10,11,12]": {123456, 7, 8, 9, 10, 11, 12},
		"[]": nil, "[ ]": nil, "[4294967296]": nil, "[-1]": nil, "[1.0]": nil, "[1e3]": nil, `["1"]`: nil, "[[1]]": nil, "[null]": nil, "[1,null]": nil, "[1,[2]]": nil, "3": nil, "{}": nil, "": nil,
		"[18446744073709551617]": nil,
	} {
		got, ok := tokenIDs(json.RawMessage(text))
		if ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
		var other []uint32
		if ok && (json.Unmarshal([]byte(text), &other) != nil || !slices.Equal(got, other)) {
			t.Errorf("%s: the decoder has %v", text, other)
		}
	}
}

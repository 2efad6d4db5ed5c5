package sweep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Splice puts a value, as JSON, at a path of fields into the text of a JSON
// object. Fields on the way are made where they are missing. What stood there
// before keeps its lines, so that places in sentences stay right. Text that is
// no JSON is left to its reader, who says what is wrong.
func Splice(text string, path []string, value string) (string, error) {
	at := 0 // where the object begins that has the next field
	for i, name := range path {
		begin, end, found, ok := field(text[at:], name)
		switch {
		case !ok:
			return text, nil
		case found == missing:
			for _, inner := range slices.Backward(path[i+1:]) {
				value = "{" + string(cliutil.AppendJSONString(nil, inner)) + ":" + value
			}
			value = string(cliutil.AppendJSONString(nil, name)) + ":" + value + strings.Repeat("}", len(path)-i-1)
			if begin != end { // other fields follow
				value += ","
			}
			return text[:at+begin] + value + text[at+begin:], nil
		case i == len(path)-1:
			return text[:at+begin] + value + text[at+end:], nil
		case text[at+begin] != '{':
			return "", fmt.Errorf("%s is %s; an object is accepted, as %s is set in it",
				strings.Join(path[:i+1], "."), cliutil.Quote(text[at+begin:at+end]), strings.Join(path, "."))
		}
		at += begin
	}
	return text, nil
}

type finding int

const (
	missing finding = iota
	present
)

// field finds the value of a field of the object that text begins with. Of a
// missing one it gives the place behind the brace, and as end another one if
// the object has fields. The last of fields with one name counts, as for
// readers that take it.
func field(text, name string) (begin, end int, found finding, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, 0, missing, false
	}
	first := int(d.InputOffset())
	begin, end = first, first
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0, 0, missing, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return 0, 0, missing, false
		}
		to := int(d.InputOffset())
		if key == name {
			begin, end, found = to-len(raw), to, present
		} else if found == missing {
			end = to
		}
	}
	return begin, end, found, true
}

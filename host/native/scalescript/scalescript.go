// Package scalescript reads the script of --scaling-script: how many workers
// there are to be from which time on.
//
// It owns the form of the file, JSON or YAML: a list of objects with at_ms and
// what is to change, workers or, of pools, prefill and decode. It does not know
// what a target leads to. Errors are one sentence with the line, what was found
// and what is accepted.
package scalescript

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Parse reads a script. source names it in sentences; pools says that workers
// are in two.
func Parse(source string, data []byte, pools bool) ([]config.Target, error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err == io.EOF {
		return nil, fmt.Errorf("%s is empty; a list of targets is accepted", source)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	p := parser{source, pools}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, p.errorf(list, "found %s, want a list of targets", kindOf(list))
	}
	script := make([]config.Target, 0, len(list.Content))
	for _, item := range list.Content {
		t, err := p.target(item)
		if err != nil {
			return nil, err
		}
		if n := len(script); n > 0 && !(t.AtMs > script[n-1].AtMs) {
			return nil, p.errorf(item, "at_ms is %v, want a time after %v, that of the target before", t.AtMs, script[n-1].AtMs)
		}
		script = append(script, t)
	}
	return script, nil
}

type parser struct {
	source string
	pools  bool
}

func (p parser) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.source, n.Line, fmt.Sprintf(format, args...))
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	return cliutil.Quote(n.Value)
}

// target reads one.
func (p parser) target(n *yaml.Node) (config.Target, error) {
	t := config.Target{AtMs: math.NaN(), Prefill: config.KeepWorkers, Decode: config.KeepWorkers}
	counts, accepted := map[string]*int{"workers": &t.Decode}, "at_ms and workers"
	if p.pools {
		counts, accepted = map[string]*int{"prefill": &t.Prefill, "decode": &t.Decode}, "at_ms, prefill and decode"
	}
	if n.Kind != yaml.MappingNode {
		return t, p.errorf(n, "found %s, want an object with %s", kindOf(n), accepted)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if seen[key.Value] {
			return t, p.errorf(key, "%s is given twice", cliutil.Quote(key.Value))
		}
		seen[key.Value] = true
		switch count := counts[key.Value]; {
		case key.Value == "at_ms":
			x, err := strconv.ParseFloat(value.Value, 64)
			if err != nil || value.Kind != yaml.ScalarNode || !(x >= 0) || math.IsInf(x, 0) {
				return t, p.errorf(value, "at_ms is %s, want a finite number of at least 0", kindOf(value))
			}
			t.AtMs = x
		case count == nil:
			return t, p.errorf(key, "found the key %s, want %s", cliutil.Quote(key.Value), accepted)
		case value.Tag == "!!null":
		default:
			x, err := strconv.Atoi(value.Value)
			if err != nil || value.Kind != yaml.ScalarNode || x < 0 || x > config.MaxWorkers {
				return t, p.errorf(value, "%s is %s, want a whole number from 0 to %d", key.Value, kindOf(value), config.MaxWorkers)
			}
			*count = x
		}
	}
	if math.IsNaN(t.AtMs) {
		return t, p.errorf(n, "at_ms is missing, want the time of the target in ms")
	}
	return t, nil
}

// Package routerconfig reads and writes the configuration of a KV router: the
// JSON object of --router-config and the YAML file of its policy classes.
//
// It owns the names of the fields, their wire form and the sentences about
// faults; it does not own what the fields mean or the rules between them
// (core/config). The file it is asked to read is the policy file that the
// configuration names, and the key file of a keyed tracking hash.
//
// Source: router notes §6.3, §7.
package routerconfig

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Config is a configuration as it was read.
type Config struct {
	config.Router
	PolicyPath string // router_policy_config; "": none

	// WorkerSelection is the first policy but "default" that the policy file
	// wants workers to be chosen by, Classifier that it wants requests to be
	// classified by a plugin. Neither is built: see Replayable.
	WorkerSelection string
	Classifier      bool
}

// Default is the configuration when nothing is said.
func Default() Config { return Config{Router: config.DefaultRouter()} }

// Options say what a configuration depends on besides its text.
type Options struct {
	Model      string // whose profile of the policy file counts; "": the root's
	PolicyPath string // takes the place of router_policy_config; "": does not
}

// Parse reads the JSON object of --router-config and the policy file that it
// names. source names the text in sentences.
func Parse(source string, data []byte, o Options) (Config, error) {
	c := Default()
	doc, err := parseJSON(source, data)
	if err != nil {
		return c, err
	}
	if doc.kind != object {
		return c, doc.errorf("the router configuration is %s; an object is accepted", doc.found())
	}
	at := map[string]value{}
	for _, m := range doc.members {
		f, ok := fieldNamed(m.name)
		if !ok {
			return c, doc.unknown(m, fieldNames())
		}
		if err := f.set(&c, m.value); err != nil {
			return c, err
		}
		at[m.name] = m.value
	}
	if v, ok := at["overlap_score_weight"]; ok && v.kind != null {
		// The older name of prefill_load_scale; 0 also switched the credit off.
		if c.PrefillLoadScale, _ = v.real(wantNumber); c.PrefillLoadScale == 0 {
			c.OverlapCredit = 0
		}
	}
	if o.PolicyPath != "" {
		c.PolicyPath = o.PolicyPath
		delete(at, "router_policy_config")
	}
	if c.PolicyPath != "" {
		if err := c.readPolicy(at, o.Model); err != nil {
			if v, ok := at["router_policy_config"]; ok {
				return c, v.errorf("router_policy_config: %v", err)
			}
			return c, err
		}
	}
	if f := c.Router.Check(); !f.OK() {
		return c, refusal(source, at, f)
	}
	return c, nil
}

// readPolicy reads the policy file. Its settings win over the fields of the
// configuration, also in sentences.
func (c *Config) readPolicy(at map[string]value, model string) error {
	text, err := os.ReadFile(c.PolicyPath)
	if err != nil {
		return fmt.Errorf("%s: %v", c.PolicyPath, cliutil.Reason(err))
	}
	p, err := ParsePolicy(c.PolicyPath, text)
	if err != nil {
		return err
	}
	for _, m := range p.settings {
		f, _ := fieldNamed(m.name)
		if err := f.set(c, m.value); err != nil {
			return err
		}
		at[m.name] = m.value
	}
	c.Policy = p.Profile(model)
	c.WorkerSelection, c.Classifier = p.WorkerSelection, p.Classifier
	return nil
}

// Replayable says why a replay cannot do what the policy file asks for; nil if
// it can.
func (c *Config) Replayable() error {
	switch {
	case c.Classifier:
		return fmt.Errorf("%s: request_classifier names a plugin; replay has none, leave it out", c.PolicyPath)
	case c.WorkerSelection != "":
		return fmt.Errorf("%s: worker_selection names %s; replay has only \"default\"", c.PolicyPath, cliutil.Quote(c.WorkerSelection))
	}
	return nil
}

// refusal words a rule that the configuration breaks. at holds the fields that
// were given.
func refusal(source string, at map[string]value, f config.RouterFault) error {
	name := faultNames[f.Field]
	v, said := at[name]
	if !said && name == "prefill_load_scale" {
		v, said = at["overlap_score_weight"]
	}
	if accepted, ok := codeAccepts[f.Code]; ok && said {
		return v.refuse(accepted)
	}
	sentence := codeRules[f.Code]
	if said {
		return v.errorf("%s: %s", v.path, sentence)
	}
	return fmt.Errorf("%s: %s: %s", source, name, sentence)
}

// Marshal is the wire form of a configuration: the reference's JSON object, with
// the fields that it writes, in their order.
func (c *Config) Marshal() ([]byte, error) {
	out := []byte{'{'}
	for _, f := range fields() {
		if f.get == nil {
			continue
		}
		v, write := f.get(c)
		if !write {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%q:", f.name)
		switch v := v.(type) {
		case float64:
			out = cliutil.AppendSerdeFloat(out, v)
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			out = append(out, text...)
		}
	}
	return append(out, '}'), nil
}

const maxUint32 = math.MaxUint32

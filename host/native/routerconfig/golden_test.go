package routerconfig

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/seq"
)

func golden(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../../testdata/router/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func asMap(t *testing.T, text []byte) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// What the reference accepts and how it writes it.
func TestGoldenConfig(t *testing.T) {
	var file struct {
		Default    map[string]any
		Validation []struct {
			JSON       string
			OK         bool
			Error      string
			Serialized map[string]any
		}
	}
	golden(t, "config_wire.json", &file)
	standard := Default()
	wire, err := standard.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(file.Default, asMap(t, wire)); d != "" {
		t.Errorf("default: %s", d)
	}
	if len(file.Validation) != 41 {
		t.Errorf("%d cases", len(file.Validation))
	}
	for _, c := range file.Validation {
		got, err := Parse("--router-config", []byte(c.JSON), Options{})
		if (err == nil) != c.OK {
			t.Errorf("%s: error %v, the reference says %q", c.JSON, err, c.Error)
			continue
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "--router-config: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q names no place, or is no sentence", c.JSON, err)
			}
			continue
		}
		wire, err := got.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.Serialized, asMap(t, wire)); d != "" {
			t.Errorf("%s: %s", c.JSON, d)
		}
	}
}

// What the reference accepts of policy files.
func TestGoldenPolicies(t *testing.T) {
	var file struct {
		Validation []struct {
			YAML     string
			OK       bool
			Error    string
			Profiles bool `json:"has_profiles"`
		}
	}
	golden(t, "queue.json", &file)
	if len(file.Validation) != 26 {
		t.Errorf("%d cases", len(file.Validation))
	}
	for _, c := range file.Validation {
		p, err := ParsePolicy("policy.yaml", []byte(c.YAML))
		if (err == nil) != c.OK {
			t.Errorf("%s: error %v, the reference says %q", c.YAML, err, c.Error)
			continue
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "policy.yaml: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q names no place, or is no sentence", c.YAML, err)
			}
			continue
		}
		if has := p.Profile("") != nil; has != c.Profiles {
			t.Errorf("%s: has a profile: %v", c.YAML, has)
		}
	}
}

// Which class the reference gives a request.
func TestGoldenClasses(t *testing.T) {
	var file struct {
		YAML           string
		Classification []struct {
			Class     string
			Direct    *int32
			Requested *string
			Uncached  uint64 `json:"uncached_tokens"`
		}
	}
	golden(t, "queue.json", &file)
	file2, err := ParsePolicy("policy.yaml", []byte(file.YAML))
	if err != nil {
		t.Fatal(err)
	}
	p := file2.Profile("any model")
	if len(file.Classification) != 35 {
		t.Errorf("%d cases", len(file.Classification))
	}
	for _, c := range file.Classification {
		name := ""
		if c.Requested != nil {
			name = *c.Requested
		}
		r := p.Resolve(name)
		if r.Direct != (c.Direct != nil) || r.Direct && r.Index != *c.Direct {
			t.Errorf("%q resolves to %+v", name, r)
		}
		if got := p.Classes[p.Class(r, c.Uncached)].Name; got != c.Class {
			t.Errorf("%q with %d tokens is of class %s, want %s", name, c.Uncached, got, c.Class)
		}
	}
}

// The reference's hashes by key.
func TestGoldenTracking(t *testing.T) {
	var file struct {
		Keyed []struct {
			BlockSize int    `json:"block_size"`
			Namespace string `json:"cache_namespace"`
			Lora      string `json:"lora_name"`
			Eagle     bool   `json:"is_eagle"`
			Key       string `json:"key_hex"`
			ID        string `json:"key_id"`
			Model     string `json:"model_name"`
			Group     string `json:"routing_group"`
			Tokens    []uint32
			Hashes    []string `json:"sequence_hashes"`
		} `json:"keyed_tracking"`
	}
	golden(t, "hashes.json", &file)
	if len(file.Keyed) != 3 {
		t.Errorf("%d cases", len(file.Keyed))
	}
	for _, c := range file.Keyed {
		key, err := hex.DecodeString(c.Key)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, key, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := Default()
		cfg.TrackingHash, cfg.TrackingKeyFile, cfg.TrackingKeyID = config.KeyedXXH3, path, c.ID
		h, err := cfg.Tracking(Subject{c.Model, c.Group, c.BlockSize, c.Namespace, c.Lora, c.Eagle})
		if err != nil {
			t.Fatal(err)
		}
		var want []uint64
		for _, word := range c.Hashes {
			n, err := strconv.ParseUint(word, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, n)
		}
		if got := h.AppendChain(nil, h.AppendLocals(nil, c.Tokens, nil)); !slices.Equal(got, want) {
			t.Errorf("%s: %x, want %x", c.ID, got, want)
		}
	}
	cfg := Default()
	if h, err := cfg.Tracking(Subject{BlockSize: 16}); err != nil || h != seq.Plain(16) {
		t.Errorf("without a key: %+v, %v", h, err)
	}
}

package main

import (
	"strings"
	"testing"
)

// A run with a disk says that rare results differ from the reference's, one
// without does not.
func TestDiskWarns(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--input-tokens", "40", "--output-tokens", "2", "--request-count", "3", "--arrival-interval-ms", "1", "--extra-engine-args"}
	engine := `{"engine":{"num_gpu_blocks":20,"block_size":4,"kv_cache_bytes_per_token":9,"native_host_offload":{"num_host_blocks":4}`
	for tail, want := range map[string]bool{`}}`: false, `,"g3_offload":{"scope":"worker_local","num_g3_blocks":4}}}`: true} {
		got := invoke(t, dir, append(args, engine+tail)...)
		if got.status != 0 || strings.Contains(got.stderr, "warning: with a disk") != want {
			t.Errorf("%s: exit code %d, %s", tail, got.status, got.stderr)
		}
	}
}

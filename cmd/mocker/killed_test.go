package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/dryserve/dryserve/internal/stand"
)

// program builds the mocker.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mocker")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// A worker that is killed is gone from the frontend once its records have expired,
// and the other has all requests; one that is told to leave is gone at once, and
// what is under way comes to its end.
func TestKilled(t *testing.T) {
	stand.Python(t) // or there is no need to build anything
	mocker := program(t)
	model := stand.Model(t, "../../host/native/live/card/testdata/model")
	for name, open := range map[string]func(*testing.T) ([]string, func() []string){"files": byFiles, "servers": byServers} {
		t.Run(name, func(t *testing.T) {
			env, endpoints := open(t)
			run := func() *stand.Program {
				return stand.Run(t, env, mocker, "--model-path", model, "--model-name", "m1", "--speedup-ratio", "20")
			}
			a, b := run(), run()
			f := stand.NewFrontend(t, "round-robin", env...)
			f.Model("m1", true)
			stand.Until(t, "two workers", func() bool { return len(endpoints()) == 2 })
			const body = `{"model":"m1","max_tokens":3,"prompt":"abc"}`
			for range 4 {
				if status, c := f.Ask(body); status != 200 {
					t.Fatalf("status %d, %+v", status, c)
				}
			}
			a.Kill()
			stand.Until(t, "the killed worker is gone", func() bool { return len(endpoints()) == 1 })
			f.Model("m1", true)
			row := 0
			stand.Until(t, "the other worker has all requests", func() bool {
				if status, _ := f.Ask(body); status == 200 {
					row++
				} else {
					row = 0 // the frontend had not noticed yet
				}
				return row == 10
			})
			long := f.Stream(stand.Soon(t), `{"model":"m1","max_tokens":3000,"prompt":"abc","stream":true}`)
			if _, err := long.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			left := make(chan struct{})
			go func() { b.Stop(); close(left) }()
			f.Model("m1", false)
			if n := len(endpoints()); n != 0 {
				t.Errorf("%d workers are recorded", n)
			}
			if n, complete := stand.Pieces(t, long, " w"); n < 2900 || !complete {
				t.Errorf("what was under way has %d pieces; complete: %v", n, complete)
			}
			<-left
			if said := b.Said(); !strings.Contains(said, "msg=drained") {
				t.Errorf("it said %s", said)
			}
		})
	}
}

// byFiles has records in a directory, and says which workers are in there.
func byFiles(t *testing.T) (env []string, endpoints func() []string) {
	root := t.TempDir()
	return []string{"DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV=" + root}, func() (names []string) {
		entries, _ := os.ReadDir(filepath.Join(root, "v1/instances"))
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "dynamo%2Fbackend%2Fgenerate%2F") {
				names = append(names, e.Name())
			}
		}
		return names
	}
}

// byServers has them in etcd, and everything else over NATS.
func byServers(t *testing.T) (env []string, endpoints func() []string) {
	etcd, nats := stand.Etcd(t), stand.NATS(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Address}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	env = []string{
		"DYN_DISCOVERY_BACKEND=etcd", "ETCD_ENDPOINTS=http://" + etcd.Address, "NATS_SERVER=nats://" + nats.Address,
		"DYN_REQUEST_PLANE=nats", "DYN_EVENT_PLANE=nats", "ETCD_LEASE_TTL=6",
	}
	return env, func() (names []string) {
		answer, err := client.Get(stand.Soon(t), "v1/instances/dynamo/backend/generate/", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range answer.Kvs {
			if kv.Lease == 0 || !strings.HasSuffix(string(kv.Key), fmt.Sprintf("/%x", kv.Lease)) {
				t.Fatalf("%s has the lease %x", kv.Key, kv.Lease)
			}
			names = append(names, string(kv.Key))
		}
		return names
	}
}

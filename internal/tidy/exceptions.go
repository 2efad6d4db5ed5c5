package tidy

// longFunctions lists functions that may be longer than the law allows, as
// "file:Name" or "file:Type.Name", each with the reason why cutting it would
// make it worse. An entry that is no longer needed is a finding.
var longFunctions = map[string]string{}

// coreLayers are the core's packages from the bottom up: each may import only
// packages of the layers above it in this list. Packages of one line know
// nothing of each other.
var coreLayers = [][]string{
	{"active", "blake3", "config", "fmath", "hashtable", "idtable", "jsontext", "kvindex", "moments", "prefix", "rng", "seq", "sorting", "trace"},
	{"coverage"},
	{"kv", "offload", "queue", "radix", "timing", "stats", "workload", "extent", "branch"},
	{"agentic", "engine", "router", "stretch", "synth"},
	{"dynamo", "sglang", "stride", "weka"},
	{"group", "intake", "ranks", "relay"},
	{"replay"},
}

// coreImports are the packages from outside the core it may import.
var coreImports = []string{
	"cmp", "encoding/binary", "math", "math/bits", "slices", "strconv", "unicode/utf8",
	"github.com/zeebo/xxh3",
}

// coreModules are the modules that may stand behind those imports.
var coreModules = map[string]string{
	"github.com/zeebo/xxh3":         "the block hash",
	"github.com/klauspost/cpuid":    "xxh3 chooses its vector code with it",
	"github.com/klauspost/cpuid/v2": "xxh3 chooses its vector code with it",
}

// exactMath are the functions of package math whose result is the same bits
// on every target. Constants are free.
var exactMath = []string{
	"Abs", "Ceil", "Copysign", "Dim", "Float32bits", "Float32frombits", "Float64bits", "Float64frombits",
	"Floor", "Frexp", "Inf", "IsInf", "IsNaN", "Ldexp", "Max", "Min", "Mod", "Modf", "NaN", "Nextafter",
	"Round", "RoundToEven", "Signbit", "Sqrt", "Trunc",
}

// directModules are the modules go.mod may require by itself, and what for.
var directModules = map[string]string{
	"github.com/dlclark/regexp2/v2":       "the expressions of tokenizer.json, which look ahead",
	"github.com/google/go-cmp":            "readable differences in tests",
	"github.com/klauspost/compress":       "gzip and zstd of trace files",
	"github.com/nats-io/nats.go":          "requests and events of live workers over NATS",
	"github.com/nats-io/nkeys":            "who asks NATS, by its keys",
	"github.com/prometheus/client_golang": "metrics of live workers",
	"github.com/spf13/pflag":              "command-line flags",
	"github.com/tetratelabs/wazero":       "runs core.wasm in Go, without cgo",
	"github.com/vbauerster/mpb/v8":        "progress bar",
	"github.com/vmihailenco/msgpack/v5":   "frames of core.wasm on the hosts' side; messages of routers and engines",
	"github.com/zeebo/blake3":             "keyed names of tracked blocks",
	"github.com/zeebo/xxh3":               "the block hash",
	"go.etcd.io/etcd/api/v3":              "leases of etcd by their ids",
	"go.etcd.io/etcd/client/v3":           "records of live workers in etcd",
	"go.uber.org/zap":                     "keeps etcd's client quiet",
	"go.yaml.in/yaml/v3":                  "policy files, scenarios",
	"golang.org/x/text":                   "Unicode normal forms of tokenizer.json",
	"google.golang.org/grpc":              "how etcd's client connects, and its errors",
	"google.golang.org/protobuf":          "the wire format of timelines",
}

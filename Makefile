# The verbs of this repository. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo build wasm wheels playground play test python bench bench-live truetime live soak fuzz lint oracle corpus clean

GO ?= go
PYTHON ?= python3
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# fuzz: time for each target.
FUZZTIME ?= 30s
# oracle: number of random cases, their family (vllm, trtllm, dp, any, syn),
# first seed (the clock's if empty), processes.
N ?= 2000
FAMILY ?= vllm
SEED ?=
JOBS ?= 2
# bench: a real Mooncake trace (left out if absent), a program that writes
# conversation traces (OUT --requests N --seed S --rate R; ours if empty), and
# how often each run is repeated.
export BENCH_TRACE ?= ../shared/data/mooncake/conversation_trace.jsonl
export BENCH_GEN ?=
REPEAT ?= 3
# truetime: a trace, and how many of its rows are played.
TRACE ?= examples/conversation-2k.jsonl
ROWS ?= 60
# soak: how long.
MINUTES ?= 30
# bench-live: rounds of each worker under each load.
ROUNDS ?= 5

help: ## list the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "make %-10s %s\n", $$1, $$2 }'

demo: build ## replay an example trace with one worker and with four
	bin/replay examples/conversation-2k.jsonl --extra-engine-args examples/engine-default.json --report-json bin/demo-1.json
	bin/replay examples/conversation-2k.jsonl --extra-engine-args examples/engine-default.json --num-workers 4 --report-json bin/demo-4.json

build: wasm ## build the programs into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

wasm: ## build core.wasm, which the programs carry
	$(GO) run ./internal/corewasm/cmd/corewasm

wheels: ## build Python's wheels for all platforms into bin/wheels/
	GO=$(GO) $(PYTHON) bindings/python/tools/build_wheel.py --out bin/wheels

playground: ## build the browser playground into web/playground/dist/
	$(GO) run ./internal/playground/cmd/play -build

play: ## build the browser playground and serve it on this machine
	$(GO) run ./internal/playground/cmd/play

test: export LIVE_PROGRAMS = required
test: export AICONFIGURATOR = 1
test: ## vet, then run every test (installs the reference, etcd and nats-server into .oracle); the core also with its invariants checked; Python's from its wheel
	$(GO) vet ./...
	@GO=$(GO) PYTHON=$(PYTHON) internal/stand/setup.sh .oracle || echo "what live workers are tested with is not complete; tests that need it fail" >&2
	@( status=0; \
	  $(GO) test -count=1 -json ./... || status=$$?; \
	  if grep -rqsE '^//go:build .*\<invariants\>' core; then \
	    $(GO) test -count=1 -json -tags invariants ./core/... || status=$$?; \
	  fi; \
	  ( cd internal/manifests && $(GO) test -count=1 -json ./... ) || status=$$?; \
	  $(PYTHON) bindings/python/tools/run_tests.py || status=$$?; \
	  exit $$status ) | $(GO) run ./internal/tidy/cmd/tally

python: ## build the Python wheel and run its tests only
	$(PYTHON) bindings/python/tools/run_tests.py | $(GO) run ./internal/tidy/cmd/tally

bench: build ## measure time and memory beside the reference, if it is installed
	$(PYTHON) bindings/python/tools/build_wheel.py --out bin/bench/wheels --platform host
	$(PYTHON) -m venv --clear bin/bench/python
	bin/bench/python/bin/pip install --quiet --disable-pip-version-check bin/bench/wheels/dryserve-*.whl
	$(GO) run ./internal/bench/cmd/bench -repeat $(REPEAT) -package bin/bench/python/bin/python
	$(GO) test -run '^$$' -bench . -benchtime 0.2s ./core/... ./host/native/tracefile/...

bench-live: ## measure the mocker beside the reference's, each behind a Dynamo frontend
	[ -n "$${ORACLE_PYTHON:-}" ] || internal/oracle/setup.sh .oracle
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/mocker
	$(GO) run ./internal/bench/cmd/benchlive -rounds $(ROUNDS)

truetime: ## play TRACE in real time against the mocker over HTTP, and compare with a replay
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/mocker ./cmd/replay
	$(GO) run ./internal/truetime/cmd/truetime -requests $(ROWS) $(TRACE)

live: truetime ## the same, and AIPerf against the mocker (installs AIPerf, 1.2 GB)
	$(GO) test -count=1 -tags live -run '^TestLive' -v ./cmd/mocker

soak: ## a mixed load on the mocker for MINUTES: memory and goroutines must not grow
	DRYSERVE_SOAK_MINUTES=$(MINUTES) $(GO) test -count=1 -run '^TestSoak$$' -v -timeout 0 ./cmd/mocker

fuzz: ## run every fuzz target for FUZZTIME
	@found=0; \
	for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	    found=$$((found + 1)); \
	  done; \
	done; \
	echo "$$found fuzz targets"; [ $$found -gt 0 ]

lint: ## formatting, vet, the repository's laws, go.mod, staticcheck
	test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) vet -tags live ./cmd/mocker
	$(GO) test -count=1 ./internal/tidy/...
	$(GO) mod tidy -diff
	$(GO) run $(STATICCHECK) ./...

oracle: ## compare N random cases with the reference (installs it into .oracle)
	[ -n "$${ORACLE_PYTHON:-}" ] || internal/oracle/setup.sh .oracle
	$(GO) run ./internal/oracle/cmd/oracle -family $(FAMILY) -n $(N) -jobs $(JOBS) $(if $(SEED),-seed $(SEED))

corpus: ## record the reference's answers that the tests compare with
	[ -n "$${ORACLE_PYTHON:-}" ] || internal/oracle/setup.sh .oracle
	$(GO) run ./internal/oracle/cmd/oracle -seed 1 -n 400 -corpus testdata/oracle/corpus.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family dp -seed 1 -n 150 -corpus testdata/oracle/corpus-dp.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family g2 -seed 1 -n 150 -corpus testdata/oracle/corpus-g2.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family g3 -seed 1 -n 150 -corpus testdata/oracle/corpus-g3.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family mtp -seed 1 -n 150 -corpus testdata/oracle/corpus-mtp.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family npz -seed 1 -n 120 -corpus testdata/oracle/corpus-npz.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family syn -seed 1 -n 150 -corpus testdata/oracle/corpus-syn.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family formats -seed 1 -n 280 -corpus testdata/oracle/corpus-formats.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family pd -seed 1 -n 300 -corpus testdata/oracle/corpus-pd.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family scale -seed 1 -n 110 -corpus testdata/oracle/corpus-scale.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family telemetry -seed 1 -n 90 -corpus testdata/oracle/corpus-telemetry.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family kv -seed 1 -n 120 -corpus testdata/oracle/corpus-kv.jsonl.gz
	$(GO) run ./internal/oracle/cmd/oracle -family kvg2 -seed 1 -n 60 -corpus testdata/oracle/corpus-kvg2.jsonl.gz

clean: ## remove what the other verbs built
	rm -rf bin host/wasm/binary/core.wasm web/playground/dist

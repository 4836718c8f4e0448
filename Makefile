# Each target sets up .venv first, from nothing if need be; nothing else of this machine is changed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Tests on a cluster wait as long as they work, so three at once keep two cores busy; each worker has control planes of
# its own, about 1 GB. A file's tests stay together, in the order in which they were found: those on clusters come early.
# A worker that dies is a failure and is not replaced: xdist would wait for the new one for ever.
WORKERS ?= 3
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadscope --no-loadscope-reorder --max-worker-restart=0

.PHONY: setup demo test test-full check lint types imports format bench bench-quick bench-live bench-embedded oracle controlplane clean help

help:                ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

setup: $(READY)      ## a .venv with everything needed, and .venv/bin/stowplan

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: setup          ## a cluster in a process, 123 pods, and why each went where it went
	$(BIN)/python -m stowplan.apps.cli demo

check: lint types imports  ## ruff, mypy and the contract of the eight rooms

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

test: check          ## what CI and a newcomer run
	$(PYTEST) -m 'not full'

test-full: check     ## the same with long fuzz runs, and fresh scenarios decided by the real kube-scheduler's code
	STOWPLAN_HYPOTHESIS=full $(PYTEST)
	$(BIN)/python -m tests.oracle

format: setup        ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup         ## figures of speed and memory, on screen and in build/bench.json
	$(BIN)/python -m benchmarks --json build/bench.json

bench-quick: setup   ## the same in a minute, for a first look
	$(BIN)/python -m benchmarks --quick --json build/bench.json

bench-live: setup    ## beside the real kube-scheduler at a real kube-apiserver, about an hour (needs Go once); ARGS='--quick'
	$(BIN)/python -m benchmarks.live --json build/bench-live.json $(ARGS)

bench-embedded: setup ## 2,000 nodes and 20,000 pods in an embedded cluster, about a minute
	$(BIN)/python -m benchmarks.embedded $(ARGS)

oracle: setup        ## build the recorder of the real kube-scheduler's decisions (needs Go)
	$(BIN)/python -m tests.oracle --build-only

controlplane: setup  ## a real control plane with kwok's nodes, until Ctrl-C (needs Go once); ARGS='--nodes 100 --kube-scheduler'
	$(BIN)/python -m tests.controlplane $(ARGS)

clean:               ## remove .venv and build results
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

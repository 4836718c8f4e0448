# Each target creates .venv first if it does not exist. Only `browser`, and `test-full` with it, changes anything outside this folder.
PYTHON ?= python3
BIN := .venv/bin
RUNS := .venv/.runs
READY := .venv/.ready
# Tests with a control plane wait about half of the time, so three workers keep two cores busy. Each worker has its own
# control planes, about 1 GB. The tests of a file stay together and in order, so that tests with a control plane start
# early. A worker that dies is a failure and is not replaced: xdist would wait for the new worker without end.
WORKERS ?= 3
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadscope --no-loadscope-reorder --max-worker-restart=0

.PHONY: setup demo docs browser screenshots bench-ui test-tools test test-full check lint types imports format bench bench-quick bench-live bench-start bench-explain bench-what-if bench-load bench-scale bench-fgd bench-history bench-embedded oracle soak kube-tests controlplane image image-lock helm chart clean help

help:                ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

setup: $(READY)      ## create .venv with all that developers need, and .venv/bin/stowplan

# One environment, filled in two steps: what Stowplan needs to run, and the tools of its developers.
$(READY): pyproject.toml constraints.txt
	@$(NEW_ENOUGH)
	@$(OWN_PYTHON) packaging/install.py dev
	@touch $(RUNS) $@

$(RUNS): pyproject.toml constraints.txt
	@$(NEW_ENOUGH)
	@$(OWN_PYTHON) packaging/install.py
	@touch $@

# The Python of .venv, or the one that .venv will be made with.
OWN_PYTHON = $(shell test -x $(BIN)/python && echo $(BIN)/python || echo $(PYTHON))
NEW_ENOUGH = $(OWN_PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("needs Python 3.11 or \
	later, this is %d.%d (%s); PYTHON=... names another" % (v[0], v[1], sys.executable))'

demo: $(RUNS)        ## the policies in eight scenes, on clusters in one process; ARGS='--pause' waits between scenes
	@$(BIN)/stowplan demo $(ARGS)

browser:             ## install Chromium for the tests of pages, where there is none (Debian; with sudo unless you are root)
	@for each in $(BROWSERS); do command -v $$each && exit; done; \
	$(AS_ROOT) apt-get update && $(AS_ROOT) apt-get install -y --no-install-recommends chromium fonts-liberation

BROWSERS = chromium chromium-browser google-chrome google-chrome-stable
AS_ROOT = $(shell test "$$(id -u)" = 0 || echo sudo)

screenshots: setup   ## pictures of each page of `stowplan ui` in build/screenshots (needs Chromium); ARGS='--readme' for the README's
	$(BIN)/python -m tests.apps.ui.screenshots $(ARGS)

test-tools: setup    ## fetch Prometheus and promtool for the tests of alerts and dashboards (Debian; nothing is installed)
	-@$(BIN)/python -m tests.monitoring.tools

check: lint types imports  ## ruff, mypy and the import contract of the packages

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy
	$(BIN)/mypy examples/*/*.py

imports: setup
	$(BIN)/lint-imports

test: check test-tools ## the checks and tests that CI runs
	$(PYTEST) -m 'not full'

test-full: check browser test-tools ## also long fuzz runs, and new scenarios compared with kube-scheduler's own code (needs Go and a browser)
	STOWPLAN_HYPOTHESIS=full STOWPLAN_BROWSER=required $(PYTEST)
	$(BIN)/python -m tests.oracle

docs: setup          ## build the site of the documentation into build/site (search works only where a server serves it)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "The site is in build/site"

format: setup        ## format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup         ## benchmarks of time and memory; also writes build/bench.json
	$(BIN)/python -m benchmarks --json build/bench.json

bench-quick: setup   ## shorter benchmarks, about a minute
	$(BIN)/python -m benchmarks --quick --json build/bench.json

bench-live: setup    ## Stowplan and kube-scheduler with a real kube-apiserver, about an hour (needs Go once); ARGS='--quick'
	$(BIN)/python -m benchmarks.live --json build/bench-live.json $(ARGS)

bench-start: setup   ## the first binding and the memory after a start, beside kube-scheduler (needs Go once); ARGS='--check'
	$(BIN)/python -m benchmarks.live.start $(ARGS)

bench-explain: setup ## reading 5,000 nodes and 50,000 pods for explain, beside kubectl (needs Go once); ARGS='--check'
	$(BIN)/python -m benchmarks.live.explain $(ARGS)

bench-what-if: setup ## the CPU of what-if and capacity at 5,000 nodes and 50,000 pods, beside reading the dump; ARGS='--check'
	$(BIN)/python -m benchmarks.what_if $(ARGS)

bench-load: setup    ## loading a dump of 5,000 nodes and 50,000 pods, beside json.loads; ARGS='--check'
	$(BIN)/python -m benchmarks.dump_loading $(ARGS)

bench-scale: setup   ## 100,000 nodes and 1,000,000 pods in one process, 2 GB; ARGS='--nodes 10000 --pods 100000'
	$(BIN)/python -m benchmarks.scale $(ARGS)

bench-fgd: setup     ## six policies beside the published results of the GPU study (../shared), an hour; ARGS='--traces default'
	$(BIN)/python -m benchmarks.fgd $(ARGS)

bench-history: setup ## add the figures of the last runs to benchmarks/history.csv and say what got worse; ARGS='--check'
	$(BIN)/python -m benchmarks.history $(ARGS)

bench-ui: setup      ## 500 changes a second on the page of 5,000 nodes, and the CPU of three event streams; ARGS='--check'
	$(BIN)/python -m benchmarks.ui $(ARGS)

bench-embedded: setup ## 2,000 nodes and 20,000 pods in an embedded cluster, about a minute
	$(BIN)/python -m benchmarks.embedded $(ARGS)

oracle: setup        ## build the recorder of kube-scheduler's decisions (needs Go)
	$(BIN)/python -m tests.oracle --build-only

image: setup         ## an OCI image in build/image, reproducible, for amd64 and arm64 (Linux); ARGS='--plugin WHEEL'
	$(BIN)/python -m deploy.image build $(ARGS)

image-lock: setup    ## pin the image's packages and wheels at the versions of today (Debian); ARGS='--check' only tells
	$(BIN)/python -m deploy.image lock $(ARGS)

soak: setup          ## an hour of storm on a real control plane, with faults and poison (needs Go once); ARGS='--minutes 10'
	$(BIN)/python -m tests.soak $(ARGS)

kube-tests: setup    ## kube-scheduler's own integration tests with Stowplan in its place, about an hour (needs Go); ARGS='scheduler/filters'
	$(BIN)/python -m tests.kube_tests $(ARGS)

controlplane: setup  ## run a real control plane with kwok nodes until Ctrl-C (needs Go once); ARGS='--nodes 100 --kube-scheduler'
	$(BIN)/python -m tests.controlplane $(ARGS)

helm: setup          ## helm from its Go module, at a pinned version with checksums, as .venv/bin/helm (needs Go)
	@$(BIN)/python -m tests.deploy.tools helm

chart: setup         ## copy into the chart what it has of deploy/: definitions, alerts, dashboards
	@$(BIN)/python packaging/chart_files.py

clean:               ## remove .venv and build results
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

"""A real control plane for tests, benchmarks and people; `python -m tests.controlplane --help` for the latter.

build        each program from its Go module by pinned version, kept in a cache folder; or from KUBEBUILDER_ASSETS
process      one program as a child process that cannot outlive us
flags        with which flags it is started
credentials  tokens, keys, kubeconfig files
api          plain HTTP
manifests    the objects written by helpers
cluster      what users do: kubectl, kubeconfig files, a namespace and nodes for a while
plane        what only the owner does: start, stop, kill, compact
stages.yaml  how kwok plays the kubelets
conftest     the fixtures: `plane`, `plane_137`, `each_plane`, `namespace`

Other servers than the main one: test_servers.py has the short set, and what takes `ON_EACH_SERVER` (conftest) the rest.
"""

"""How the commands of each page are run by tests: all that a page has is typed, apart from what its session names.

A command is a line of a block in the language of a shell that begins with a word of `WORDS`; in blocks of `console`, a
line that begins with `$ `, which the page shows with its output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.documentation import pages
from tests.documentation.pages import Block

WORDS = (
    r"stowplan|kubectl|make|python3?|pipx?|curl|promtool|helm|skopeo|podman|go|dask|pytest|git"
    r"|export|until|eval|mv|ln|mkdir|source|\(?cd"
)
BEGINS = re.compile(rf"(?:\.venv/bin/|env/bin/|/opt/stowplan/bin/)?(?:{WORDS})(?![\w.:])|TOKEN=")
COMPONENTS = re.compile(r"# in deploy/kustomization.yaml: components: \[(.*)\]")
KUBECONFIG = "apiVersion: v1\nkind: Config\n"

# Why a command is not typed. The first half is run by a test all the same.
ELSEWHERE = "run by "
LONG = "takes up to hours"
REGISTRY = "needs a registry"
INSTALLS = "changes the machine"
POD = "asks a pod, and no container runs in tests; the same of a program is asked by "


@dataclass(frozen=True)
class Session:
    """What a reader has who types the commands of a page, and which of them are not typed here.

    `cluster` are the flags of a `stowplan up` that runs meanwhile. `files` are there. `first` is typed before all
    others, and each of `before` once, before the next command that matches. `means` says what a reader puts for words
    of the page. A command that matches `no` may end with exit code 1. `shows` is a part of what a command prints.
    """

    cluster: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    first: Sequence[str] = ()
    before: Sequence[tuple[str, Sequence[str]]] = ()
    means: Mapping[str, str] = field(default_factory=dict)
    no: str = r"$^"
    shows: Mapping[str, str] = field(default_factory=dict)
    console: str = ""  # the test that reads the page and compares what its console blocks show
    left: Mapping[str, str] = field(default_factory=dict)

    def reason(self, command: str, block: Block) -> str | None:
        """Why a command is not typed; None if it is."""
        if self.console and block.language == "console":
            return ELSEWHERE + self.console
        return next((why for pattern, why in self.left.items() if re.match(pattern, command)), None)


def commands(page: Path) -> Iterator[tuple[Block, str]]:
    """Yield the commands of a page, without the comments after them."""
    for block in pages.blocks(page):
        if block.language in ("", "shell", "bash", "sh", "console"):
            for line in block.text.replace("\\\n", " ").splitlines():
                text = line.removeprefix("$ ") if line.startswith("$ ") or block.language != "console" else ""
                if BEGINS.match(text) or COMPONENTS.match(text):
                    yield block, text if text.startswith("#") else re.sub(r"\s+#\s.*$", "", text)


A_NODE = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {kubernetes.io/hostname: a}}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
"""
SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
POOL = """
leaderElection: {leaderElect: true, resourceNamespace: kube-system, resourceName: stowplan-%s}
profiles: [{schedulerName: pool-%s}]
"""
LEASE = (
    "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: stowplan, namespace: kube-system}, "
    "spec: {holderIdentity: somebody}}"
)
TARGET = "run by the Makefile's own users: it is how these tests are run, or made ready"
UP = "--nodes 2"
HUB = "--no-scheduler"
KINDS = (
    "managedclusters,managedclustersets,managedclustersetbindings,addonplacementscores,placements,placementdecisions,"
    "namespaces"
)
EXAMPLE = "examples/policies/"

SESSIONS: Mapping[str, Session] = {
    "README.md": Session(
        left={
            "make demo": "run by tests/apps/demo/test_make.py",
            "make docs": "run by tests/documentation/test_site.py",
            "make (setup|test)": TARGET,
        },
    ),
    "CONTRIBUTING.md": Session(
        left={
            "make (setup|test|test-full)$": TARGET,
            "make browser": INSTALLS,
            "make bench": LONG,
            "make test-tools": "run by tests/monitoring/tools.py",
            "make docs": "run by tests/documentation/test_site.py",
        },
    ),
    "benchmarks/README.md": Session(left={"python -m benchmarks": LONG, "make bench": LONG}),
    "deploy/README.md": Session(
        cluster=UP,
        left={
            r"make helm|\.venv/bin/helm|kubectl run": "run by tests/controlplane/test_chart.py",
            "make image": "run by tests/image",
            "skopeo": REGISTRY,
            r"\(cd deploy && kustomize": REGISTRY,
        },
    ),
    "deploy/charts/stowplan/README.md": Session(
        left={r"make helm|\.venv/bin/helm|kubectl run|helm": "run by tests/controlplane/test_chart.py"},
    ),
    "deploy/follow/README.md": Session(
        cluster=HUB,
        files={"workload.yaml": A_NODE, "east.kubeconfig": KUBECONFIG, "west.kubeconfig": KUBECONFIG},
        first=(
            "kubectl config set-context east --cluster=$(kubectl config get-clusters | tail -n 1) "
            "--user=$(kubectl config get-users | tail -n 1)",
        ),
    ),
    "deploy/placement/README.md": Session(cluster=HUB),
    "deploy/profiles/bin-packing/README.md": Session(cluster=UP),
    "deploy/profiles/kubenexus-scheduler/README.md": Session(cluster=UP),
    "deploy/replace-kube-scheduler/README.md": Session(
        left={r"python3 -m venv /opt|/opt|mv|ln": f"{INSTALLS}; the program is run by tests/deploy/test_wheel.py"},
    ),
    "docs/command-line.md": Session(
        cluster=UP,
        first=("kubectl get nodes,pods -A -o yaml > all.yaml", "export HOME=$PWD", "mkdir -p .config/fish/completions"),
    ),
    "docs/conformance.md": Session(left={"make (kube-tests|soak)": f"{LONG}; tests/kube_tests and tests/soak"}),
    "docs/demo.md": Session(
        means={"[--pause]": ""},
        left={
            "make demo": "run by tests/apps/demo/test_make.py",
            "pipx": "needs pipx; a wheel alone is installed by tests/deploy/test_wheel.py",
        },
    ),
    "docs/dra.md": Session(left={"": "run by tests/documentation/test_dra.py"}),
    "docs/embedded.md": Session(
        files={"dump.yaml": A_NODE},
        shows={"kubectl auth can-i": "pods/binding"},
        left={"make bench-embedded": LONG},
    ),
    "docs/explain.md": Session(
        cluster=UP,
        first=(
            "kubectl create deployment web --image=nginx --replicas=3 --dry-run=client -o json | jq "
            "'.spec.template.spec.nodeSelector.disk = \"ssd\"' | kubectl apply -f -",
        ),
        no="stowplan explain",
        console="tests/apps/explain/test_docs.py",
    ),
    "docs/features.md": Session(cluster=HUB),
    "docs/image.md": Session(
        left={
            "make image": "run by tests/image",
            "skopeo": REGISTRY,
            "podman": "needs podman; tests/image starts the image",
            r"\.venv/bin/python -m deploy.image rootfs": "run by tests/deploy/test_rootfs.py",
        },
    ),
    "docs/kubernetes-versions.md": Session(
        cluster=UP,
        left={
            r"\.venv/bin/stowplan parity": "run by tests/apps/parity",
            "make oracle": "run by make test-full, with Go",
        },
    ),
    "docs/operations.md": Session(
        cluster=HUB,
        files={"config.yaml": SCHEDULER, "decisions.jsonl": "", "stowplan.log": ""},
        means={"/var/log/stowplan/": ""},
        left={
            "promtool": "run by tests/monitoring/test_rules.py",
            "kubectl -n kube-system (create token|port-forward)|stowplan bundle --pages": POD + "tests/apps/bundle",
        },
    ),
    "docs/performance.md": Session(left={"make bench-live": LONG}),
    "docs/placement.md": Session(
        before=(
            ("stowplan config check", ("cp policy/* .",)),
            ("stowplan place --config", ("kill %2",)),
            (
                "stowplan place explain -f",
                (f"kubectl get {KINDS} -A -o yaml > hub.yaml", "kubectl get placement web -o yaml > mine.yaml"),
            ),
        ),
        no="stowplan place explain",
        shows={"stowplan place explain web": "default/web"},
        left={
            "curl": "run by tests/controlplane/test_placement_deployed.py",
            "stowplan place follow": "run by tests/apps/place/follow",
        },
    ),
    "docs/plugins.md": Session(
        cluster=UP,
        files={"arguments.yaml": "regions: {eu: [frankfurt, dublin]}\n"},
        before=(
            ("stowplan config check", ("cd disk_type",)),
            ("stowplan explain", ("kubectl run web --image=nginx", "kubectl wait --for=condition=Ready pod/web")),
            ("stowplan plugin check packing", ("cd ..",)),
            ("stowplan config check", ("cd policy",)),
        ),
        means={"POD": "web"},
        no="stowplan place explain",
        console="tests/test_public_modules.py",
    ),
    "docs/policies/bin-packing.md": Session(cluster=UP),
    "docs/policies/gangs.md": Session(cluster=UP),
    "docs/policies/reservations.md": Session(
        cluster=UP,
        left={"kubectl describe pod": "run by tests/controlplane/test_reservations.py"},
    ),
    "docs/policies/sp-priority.md": Session(cluster=UP),
    "docs/policies/workload-policy.md": Session(
        cluster=UP,
        left={"kubectl describe pod": "run by tests/controlplane/test_all_policies.py"},
    ),
    "docs/running.md": Session(
        cluster=UP,
        first=(
            "kubectl create namespace monitoring",
            "kubectl -n monitoring create serviceaccount prometheus",
            f"kubectl apply -f - <<< '{LEASE}'",
        ),
        left={
            "kubectl -n kube-system port-forward": POD + "tests/controlplane/test_deploy.py",
            "curl": POD + "tests/controlplane/test_deploy.py",
            "go tool pprof": "run by tests/controlplane/test_deploy.py",
        },
    ),
    "docs/scale.md": Session(
        cluster=HUB,
        files={f"pool-{each}.yaml": SCHEDULER + POOL % (each, each) for each in "ab"},
        left={"make bench-scale": LONG},
    ),
    "docs/scores.md": Session(
        shows={"kubectl get addonplacementscores": "disasterrecovery"},
        left={
            "stowplan score-agent usage": "run by tests/controlplane/test_scores.py",
            "stowplan score-agent (prometheus|http)": "run by tests/controlplane/test_scores.py",
            "kubectl --context": "run by tests/controlplane/test_scores_deployed.py",
        },
    ),
    "docs/shadow.md": Session(cluster=UP, means={"10m": "3s"}),
    "docs/simulation.md": Session(
        cluster=UP,
        console="tests/apps/simulate/test_command.py",
        left={
            "stowplan simulate openb": "run by python -m benchmarks.fgd",
            "dask": "run by tests/apps/sweep",
            "stowplan simulate cluster.yaml scenario.yaml": "run by tests/apps/sweep",
            "stowplan simulate dump.yaml trace.csv --fail-if": "run by tests/apps/simulate/test_command.py",
        },
    ),
    "docs/tutorial.md": Session(left={"": "run by tests/documentation/test_tutorial.py"}),
    "docs/ui.md": Session(left={"stowplan ui": "run by tests/apps/ui", "stowplan up": "run by tests/apps/up"}),
    "docs/what-if.md": Session(console="tests/apps/what_if/test_docs.py"),
    "examples/01-first-plugin/README.md": Session(),
    "examples/02-per-node/README.md": Session(no="stowplan plugin bench"),  # it says that one is slow
    "examples/04-own-kind/README.md": Session(no="stowplan explain"),
    "examples/06-cluster-policy/README.md": Session(
        no="stowplan place explain", shows={"stowplan place explain": "birch"}
    ),
    "examples/07-score-producer/README.md": Session(
        cluster=HUB,
        first=(
            "kubectl create namespace cluster1",
            "kubectl create namespace cluster2",
            "kubectl create namespace ns1",
        ),
    ),
    "examples/08-follow-decisions/README.md": Session(
        left={"stowplan place follow": "run by tests/examples/test_follow_decisions.py"},
    ),
    "examples/09-tests-in-ci/README.md": Session(),
    "examples/10-policy-gate/README.md": Session(no="stowplan simulate"),
    f"{EXAMPLE}flavour-cluster-wide/README.md": Session(
        means={" POD": " $(kubectl get pods -n team-a -o name | head -n 1 | cut -d/ -f2)"},
    ),
    f"{EXAMPLE}mpi-gang/README.md": Session(),
    f"{EXAMPLE}pytorch-job/README.md": Session(),
    f"{EXAMPLE}sp-priority/README.md": Session(),
    f"{EXAMPLE}spark-application/README.md": Session(),
    f"{EXAMPLE}workload-policy/README.md": Session(),
}

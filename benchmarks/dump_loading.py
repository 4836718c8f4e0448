"""`python -m benchmarks.dump_loading`: what it takes to load a dump, in times of what `json.loads` takes for its text.

    short      the fields that somebody wrote, as a generator of clusters writes them
    labels     the same, each pod with a label of its own
    kubectl    as `kubectl get -o json` writes it: defaults, managedFields, conditions, a token's volume for each pod
    stowplan   what `stowplan dump` keeps of that

Both in one process, by turns, with Python's garbage collection as it is by default.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import click

from benchmarks.what_if import a_cluster
from stowplan.simulation import ClusterDump, InputProblems, SimulatedCluster, cluster_from

AT_MOST = 3.0  # times json.loads
SEED = 7
_MANAGERS = ("kubectl", "kubelet")
Document = dict[str, Any]


def as_kubectl_writes(nodes: int, pods: int) -> list[Document]:
    """The objects as a server returns them."""
    draw = random.Random(SEED)
    return [_as_served(each, draw) for each in a_cluster(nodes, pods)]


def in_short(nodes: int, pods: int) -> list[Document]:
    return list(a_cluster(nodes, pods))


def with_labels(nodes: int, pods: int) -> list[Document]:
    """The same, each object with a label that has its name."""
    found = in_short(nodes, pods)
    for document in found:
        metadata = document["metadata"]
        document["metadata"] = {**metadata, "labels": {**metadata.get("labels", {}), "name": metadata["name"]}}
    return found


def as_dumped(nodes: int, pods: int) -> list[Document]:
    return ClusterDump(as_kubectl_writes(nodes, pods)).plain()


DUMPS: dict[str, Callable[[int, int], list[Document]]] = {
    "short": in_short,
    "labels": with_labels,
    "kubectl": as_kubectl_writes,
    "stowplan": as_dumped,
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True)
@click.option("--pods", type=click.IntRange(1), default=50_000, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--check", is_flag=True, help=f"Exit 1 if loading takes more than {AT_MOST:g} times json.loads.")
def main(nodes: int, pods: int, rounds: int, check: bool) -> None:
    """Load dumps of a large cluster into a simulated one."""
    failed = False
    for name, written in DUMPS.items():
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": written(nodes, pods)}).encode()
        reading, loading = [], []
        for _ in range(rounds):
            reading.append(cpu_of(json.loads, text))
            loading.append(cpu_of(load, text))
        ratio = median(loading) / median(reading)
        failed |= ratio > AT_MOST
        size = f"{len(text) / 1e6:,.0f} MB"
        click.echo(
            f"{name} ({size}): json.loads {median(reading):.2f} s, loading {median(loading):.2f} s, {ratio:.2f} times"
        )
    sys.exit(1 if check and failed else 0)


def load(text: bytes) -> SimulatedCluster:
    """Load a dump as the documentation says."""
    problems = InputProblems()
    cluster = SimulatedCluster()
    cluster.load(cluster_from(text, "dump.json", problems), problems)
    return cluster


def cpu_of(work: Callable[[bytes], object], text: bytes) -> float:
    """The CPU seconds of some work. What it leaves is not collected meanwhile."""
    gc.collect()
    begun = time.process_time()
    made = work(text)
    spent = time.process_time() - begun
    del made
    return spent


def _as_served(document: Document, draw: random.Random) -> Document:
    """The object with what a server adds, and what others wrote about it."""
    metadata = {
        **document["metadata"], "creationTimestamp": "2026-03-01T08:00:00Z", "uid": f"{draw.getrandbits(128):032x}",
        "resourceVersion": str(draw.getrandbits(30)), "managedFields": [_manager(each) for each in _MANAGERS],
    }  # fmt: skip
    found = {**document, "metadata": metadata}
    if document["kind"] == "Pod":
        return _pod(found, draw)
    return _node(found, draw) if document["kind"] == "Node" else found


def _manager(name: str) -> Document:
    fields = ("f:metadata", "f:labels", "f:ownerReferences", "f:spec", "f:containers", "f:resources", "f:status")
    inner: Document = {}
    for field in fields:
        inner = {field: {".": {}, **inner}, f"{field}.name": {}}
    return {
        "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": inner, "manager": name, "operation": "Update",
        "time": "2026-03-01T08:00:00Z",
    }  # fmt: skip


def _pod(pod: Document, draw: random.Random) -> Document:
    volume, address = f"kube-api-access-{draw.getrandbits(24):06x}", _address(draw)
    mount = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": volume, "readOnly": True}
    containers = [
        {**each, "imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log",
         "terminationMessagePolicy": "File", "volumeMounts": [mount]}
        for each in pod["spec"]["containers"]
    ]  # fmt: skip
    sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
               {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}}]  # fmt: skip
    spec = {
        **pod["spec"], "containers": containers, "dnsPolicy": "ClusterFirst", "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority", "priority": 0, "restartPolicy": "Always",
        "schedulerName": "default-scheduler", "securityContext": {}, "serviceAccount": "default",
        "serviceAccountName": "default", "terminationGracePeriodSeconds": 30, "tolerations": _tolerations(),
        "volumes": [{"name": volume, "projected": {"defaultMode": 420, "sources": sources}}],
    }  # fmt: skip
    ran = {"lastProbeTime": None, "lastTransitionTime": "2026-03-01T08:00:05Z", "status": "True"}
    status = {
        "conditions": [{**ran, "type": each} for each in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
        "containerStatuses": [{
            "containerID": f"containerd://{draw.getrandbits(256):064x}", "image": "main:1", "imageID": "sha256:1",
            "lastState": {}, "name": "main", "ready": True, "restartCount": 0, "started": True,
            "state": {"running": {"startedAt": "2026-03-01T08:00:04Z"}},
        }],
        "hostIP": _address(draw), "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "qosClass": "Burstable", "startTime": "2026-03-01T08:00:01Z",
    }  # fmt: skip
    return {**pod, "spec": spec, "status": status}


def _node(node: Document, draw: random.Random) -> Document:
    images = [{"names": [f"registry/{draw.getrandbits(64):x}:1"], "sizeBytes": draw.getrandbits(28)} for _ in range(40)]
    return {**node, "status": {**node["status"], "images": images}}


def _tolerations() -> list[Document]:
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return [{"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300} for key in keys]


def _address(draw: random.Random) -> str:
    return ".".join(str(draw.randrange(256)) for _ in range(4))


if __name__ == "__main__":
    main()

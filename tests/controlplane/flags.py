"""With which flags each program is started, as far as they do not depend on another part of the plane.

Everything listens on loopback. The ports lie below the range that the kernel hands out for outgoing connections:
a client that tries again and again to reach a dead server could otherwise be given that very port for its own end.
No port is given out twice: who asked for it may need seconds before it listens, or be killed and come back to it. Of
several workers of one test run each has ports that no other gives out.
"""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

from tests.controlplane import build

LOOPBACK = "127.0.0.1"
_given: set[int] = set()
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

ETCD = [
    "--unsafe-no-fsync",  # what a power cut would take is of no worth here
    "--log-level=error",
]

APISERVER = [
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",  # as kubeadm does; the others are on by themselves
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-cluster-ip-range=10.96.0.0/16",
    "--allow-privileged=true",
    f"--advertise-address={LOOPBACK}",  # otherwise it looks for a default route and fails on a machine without network
    "--endpoint-reconciler-type=none",  # no Endpoints may hold a loopback address
]

CONTROLLER_MANAGER = [
    "--use-service-account-credentials",
    "--leader-elect=false",
    "--kube-api-qps=500",  # hundreds of pods at once, and not twenty a second
    "--kube-api-burst=1000",
]
WITHOUT_KUBELETS = ["--node-monitor-grace-period=24h"]  # otherwise it calls silent nodes dead after a minute

KWOK = [
    "--manage-all-nodes=true",
    "--node-lease-duration-seconds=40",
    f"--config={Path(__file__).with_name('stages.yaml')}",
]

# What a figure of speed should not be about: the events' space, the server's queues, and the objects that only the
# controller-manager makes. Without the latter no pod would be admitted and each node would keep its not-ready taint.
NOT_FOR_BENCHMARKS = ("kube-controller-manager", "kwok")
BENCHMARK_ETCD = [f"--quota-backend-bytes={8 << 30}"]
BENCHMARK_APISERVER = [
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    "--max-requests-inflight=10000",
    "--max-mutating-requests-inflight=10000",
]

# PodGroup and Workload: off unless asked for, and named differently in each version. Older servers have no PodGroup.
POD_GROUP_GATES = {
    build.MAIN: "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true",
    build.NEXT: "GenericWorkload=true",
}
POD_GROUP_APIS = {build.MAIN: "scheduling.k8s.io/v1alpha2", build.NEXT: "scheduling.k8s.io/v1beta1"}


def serving(port: int, folder: Path) -> list[str]:
    """Where a Kubernetes program listens, and where it puts the certificate that it makes itself."""
    return [f"--bind-address={LOOPBACK}", f"--secure-port={port}", f"--cert-dir={folder}"]


def acting_as(kubeconfig: Path) -> list[str]:
    """As whom a Kubernetes program asks kube-apiserver, also about those who ask for its own metrics."""
    return [f"--{use}kubeconfig={kubeconfig}" for use in ("", "authentication-", "authorization-")]


def free_port() -> int:
    while True:
        port = random.randrange(20_000 + _WORKER, 32_000, _WORKERS)
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do: TIME_WAIT is free
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            _given.add(port)
            return port

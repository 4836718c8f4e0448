"""The objects that the helpers of a control plane create."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
NOT_READY = "node.kubernetes.io/not-ready"
ZONES = 3


def node(name: str, number: int, labels: Mapping[str, str], capacity: Mapping[str, str], *, ready: bool) -> Any:
    """`ready` where no kwok plays the kubelet that would say so."""
    given = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    resources = CAPACITY | dict(capacity)
    status: dict[str, Any] = {"capacity": resources, "allocatable": resources}
    if ready:
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "NobodyAsked"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": given | dict(labels)},
        "status": status,
    }


def scheduler_configuration(config: Mapping[str, Any], kubeconfig: Path) -> dict[str, Any]:
    """kube-scheduler ignores the flag --kubeconfig beside --config, so who it acts as goes into the document."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **config,
        "leaderElection": {"leaderElect": False, **config.get("leaderElection", {})},
        "clientConnection": {"kubeconfig": str(kubeconfig), **config.get("clientConnection", {})},
    }

"""Nodes: the status that a kubelet registers with, and the taints that follow from the state of a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    RecordEvent,
    SetStatus,
    UpdateObject,
)
from stowplan.embedded.controllers.queries import condition
from stowplan.embedded.documents import Document
from stowplan.embedded.schema import builtin_types
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import micro_stamp, stamp

_LEASES, _LEASE_NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_TTL = "node.alpha.kubernetes.io/ttl"
_NOT_READY = "node.kubernetes.io/not-ready"
CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
_LABELS = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class NodeController:
    """A node without a Ready condition becomes ready; a node with one (from a dump, say) keeps it."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._last_address = 0

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        return (change.key,) if change.collection == "nodes" else ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        node = self._store.get("nodes", key)
        if node is None:
            lease = self._store.get(_LEASES, f"{_LEASE_NAMESPACE}/{key}")
            if lease is not None:
                yield DeleteDocument(_LEASES, f"{_LEASE_NAMESPACE}/{key}", lease["metadata"]["uid"])
            return
        yield from self._taints(node)
        yield from self._labels(key)
        if condition(node, "Ready") is None:
            yield SetStatus("nodes", key, node["metadata"]["uid"], self._registered(node, now))
            message = f"Node {key} event: Registered Node {key} in Controller"
            yield RecordEvent(node, "RegisteredNode", message, "node-controller")
            yield from self._lease(node, now)

    def _taints(self, node: Document) -> Iterator[Action]:
        """Taint cordoned nodes, and remove the not-ready taint of ready nodes."""
        taints = node["spec"].get("taints", [])
        desired = [taint for taint in taints if taint["key"] not in (_UNSCHEDULABLE["key"], _NOT_READY)]
        desired += [taint for taint in taints if taint["key"] == _NOT_READY and not _ready(node)]
        if node["spec"].get("unschedulable"):
            desired += [taint for taint in taints if taint["key"] == _UNSCHEDULABLE["key"]] or [_UNSCHEDULABLE]
        if len(desired) != len(taints) or any(taint not in taints for taint in desired):
            spec = {name: value for name, value in node["spec"].items() if name != "taints"}
            yield UpdateObject("nodes", {**node, "spec": {**spec, "taints": desired} if desired else spec})

    def _labels(self, key: str) -> Iterator[Action]:
        node = self._store.get("nodes", key)
        if node is None:
            return
        metadata = node["metadata"]
        labels = {"kubernetes.io/hostname": key, **_LABELS, **metadata.get("labels", {})}
        annotations = {_TTL: "0", **metadata.get("annotations", {})}
        if metadata.get("labels") != labels or metadata.get("annotations") != annotations:
            yield UpdateObject(
                "nodes", {**node, "metadata": {**metadata, "labels": labels, "annotations": annotations}}
            )

    def _registered(self, node: Document, now: float) -> Document:
        status = dict(node.get("status", {}))
        status.setdefault("capacity", dict(CAPACITY))
        status.setdefault("allocatable", dict(status["capacity"]))
        times = {"lastHeartbeatTime": stamp(now), "lastTransitionTime": stamp(now)}
        names = ("type", "status", "reason", "message")
        status["conditions"] = [
            *status.get("conditions", ()), *(dict(zip(names, each, strict=True)) | times for each in _CONDITIONS),
        ]  # fmt: skip
        if not status.get("addresses"):
            self._last_address += 1
            address = (
                f"172.{16 + (self._last_address >> 16)}.{self._last_address >> 8 & 255}.{self._last_address & 255}"
            )
            host = {"type": "Hostname", "address": node["metadata"]["name"]}
            status["addresses"] = [{"type": "InternalIP", "address": address}, host]
        info = {key: value for key, value in status.get("nodeInfo", {}).items() if value}
        status["nodeInfo"] = {**_INFO, "kubeletVersion": f"v{builtin_types.version()}", **info}
        return status

    def _lease(self, node: Document, now: float) -> Iterator[Action]:
        metadata = node["metadata"]
        if self._store.get("namespaces", _LEASE_NAMESPACE) is None:
            return
        if self._store.get(_LEASES, f"{_LEASE_NAMESPACE}/{metadata['name']}") is None:
            spec = {"holderIdentity": metadata["name"], "leaseDurationSeconds": 40, "renewTime": micro_stamp(now)}
            yield CreateDocument(_LEASES, _LEASE_NAMESPACE, {"metadata": {"name": metadata["name"]}, "spec": spec})


def _ready(node: Document) -> bool:
    found = condition(node, "Ready")
    return found is None or found.get("status") == "True"


_INFO = {
    "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "pretended://1", "kernelVersion": "pretended",
    "kubeProxyVersion": "", "machineID": "", "operatingSystem": "linux", "osImage": "Stowplan's pretended node",
    "systemUUID": "",
}  # fmt: skip

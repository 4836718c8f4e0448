"""Nodes: what a kubelet says of its node when it registers, and the taints that follow from a node's state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from stowplan.embedded.controllers.actions import Action, CreateObject, DeleteObject, EventNote, SetStatus, UpdateObject
from stowplan.embedded.controllers.queries import condition
from stowplan.embedded.schema import builtin_types
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import fine_stamp, stamp

Document: TypeAlias = dict[str, Any]

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
    """A node that says nothing of its state becomes ready; one that does (as from a dump) is left as it is."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._given = 0

    def concerns(self, happened: StoreChange) -> Iterable[str]:
        return (happened.key,) if happened.collection == "nodes" else ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        node = self._store.get("nodes", key)
        if node is None:
            lease = self._store.get(_LEASES, f"{_LEASE_NAMESPACE}/{key}")
            if lease is not None:
                yield DeleteObject(_LEASES, f"{_LEASE_NAMESPACE}/{key}", lease["metadata"]["uid"])
            return
        yield from self._taints(node)
        yield from self._labels(key)
        if condition(node, "Ready") is None:
            yield SetStatus("nodes", key, node["metadata"]["uid"], self._registered(node, now))
            message = f"Node {key} event: Registered Node {key} in Controller"
            yield EventNote(node, "RegisteredNode", message, "node-controller")
            yield from self._lease(node, now)

    def _taints(self, node: Document) -> Iterator[Action]:
        """Cordoned nodes have a taint, too; one that is ready does not say that it is not."""
        taints = node["spec"].get("taints", [])
        wanted = [taint for taint in taints if taint["key"] not in (_UNSCHEDULABLE["key"], _NOT_READY)]
        wanted += [taint for taint in taints if taint["key"] == _NOT_READY and not _ready(node)]
        if node["spec"].get("unschedulable"):
            wanted += [taint for taint in taints if taint["key"] == _UNSCHEDULABLE["key"]] or [_UNSCHEDULABLE]
        if len(wanted) != len(taints) or any(taint not in taints for taint in wanted):
            spec = {name: value for name, value in node["spec"].items() if name != "taints"}
            yield UpdateObject("nodes", {**node, "spec": {**spec, "taints": wanted} if wanted else spec})

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
            self._given += 1
            address = f"172.{16 + (self._given >> 16)}.{self._given >> 8 & 255}.{self._given & 255}"
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
            spec = {"holderIdentity": metadata["name"], "leaseDurationSeconds": 40, "renewTime": fine_stamp(now)}
            yield CreateObject(_LEASES, _LEASE_NAMESPACE, {"metadata": {"name": metadata["name"]}, "spec": spec})


def _ready(node: Document) -> bool:
    found = condition(node, "Ready")
    return found is None or found.get("status") == "True"


_INFO = {
    "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "pretended://1", "kernelVersion": "pretended",
    "kubeProxyVersion": "", "machineID": "", "operatingSystem": "linux", "osImage": "Stowplan's pretended node",
    "systemUUID": "",
}  # fmt: skip

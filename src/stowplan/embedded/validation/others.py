"""Nodes, services, storage, budgets, priorities, events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from stowplan.embedded.errors import Cause, forbidden_field, required, unsupported, wrong
from stowplan.embedded.validation.metadata import check_labels
from stowplan.embedded.validation.workloads import check_share
from stowplan.objects import quantity
from stowplan.objects.selectors import is_label_key

Document: TypeAlias = dict[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_HIGHEST = 1_000_000_000
_SOURCES = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
    "gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume",
    "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
)  # fmt: skip


def check_node(node: Document) -> Iterator[Cause]:
    for index, taint in enumerate(node["spec"].get("taints", ())):
        field = f"spec.taints[{index}]"
        if not is_label_key(taint.get("key", "")):
            yield wrong(f"{field}.key", taint.get("key", ""), "name part must be non-empty")
        if taint.get("effect") not in _EFFECTS:
            yield unsupported(f"{field}.effect", taint.get("effect"), _EFFECTS)
    for part in ("capacity", "allocatable"):
        for name, amount in node.get("status", {}).get(part, {}).items():
            if quantity.nanos(amount) < 0:
                yield wrong(f"status.{part}.{name}", amount, "must be greater than or equal to 0")


def check_service(service: Document) -> Iterator[Cause]:
    spec = service["spec"]
    kinds = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    if spec["type"] not in kinds:
        yield unsupported("spec.type", spec["type"], kinds)
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    for index, port in enumerate(spec.get("ports", ())):
        if not 0 < port.get("port", 0) < 65536:
            yield wrong(f"spec.ports[{index}].port", port.get("port", 0), "must be between 1 and 65535, inclusive")
        if len(spec["ports"]) > 1 and not port.get("name"):
            yield required(f"spec.ports[{index}].name")
    yield from check_labels("spec.selector", spec.get("selector", {}))


def check_claim(claim: Document) -> Iterator[Cause]:
    spec = claim["spec"]
    yield from _modes(spec)
    if "storage" not in spec.get("resources", {}).get("requests", {}):
        yield required("spec.resources[storage]")


def check_volume(volume: Document) -> Iterator[Cause]:
    spec = volume["spec"]
    yield from _modes(spec)
    if "storage" not in spec.get("capacity", {}):
        yield required("spec.capacity")
    if not any(name in spec for name in _SOURCES):
        yield required("spec", "must specify a volume type")


def _modes(spec: Document) -> Iterator[Cause]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes", ()):
        if mode not in _MODES:
            yield unsupported("spec.accessModes", mode, _MODES)


def check_claim_update(claim: Document, old: Document) -> Iterator[Cause]:
    """A claim can be given its volume and class once, and can grow."""
    free = ("resources", "volumeAttributesClassName")
    for key in claim["spec"].keys() | old["spec"].keys():
        if key in free or claim["spec"].get(key) == old["spec"].get(key):
            continue
        if key in ("volumeName", "storageClassName") and not old["spec"].get(key):
            continue
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden_field("spec", why)
        return


def check_storage_class(document: Document) -> Iterator[Cause]:
    if not document.get("provisioner"):
        yield required("provisioner")
    if document.get("volumeBindingMode") not in ("Immediate", "WaitForFirstConsumer"):
        choices = ("Immediate", "WaitForFirstConsumer")
        yield unsupported("volumeBindingMode", document.get("volumeBindingMode"), choices)


def check_storage_class_update(document: Document, old: Document) -> Iterator[Cause]:
    for name in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
        if document.get(name) != old.get(name):
            yield forbidden_field(name, f"updates to {name} are forbidden.")


def check_budget(budget: Document) -> Iterator[Cause]:
    spec = budget["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        why = "minAvailable and maxUnavailable cannot be both set"
        yield wrong("spec", {"minAvailable": spec["minAvailable"], "maxUnavailable": spec["maxUnavailable"]}, why)
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            yield from check_share(f"spec.{name}", spec[name])


def check_priority_class(document: Document) -> Iterator[Cause]:
    system = document["metadata"].get("name", "").startswith("system-")
    if document["value"] > _HIGHEST and not system:
        yield forbidden_field("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    if document["preemptionPolicy"] not in ("Never", "PreemptLowerPriority"):
        yield unsupported("preemptionPolicy", document["preemptionPolicy"], ("Never", "PreemptLowerPriority"))


def check_priority_class_update(document: Document, old: Document) -> Iterator[Cause]:
    for name in ("value", "preemptionPolicy"):
        if document.get(name) != old.get(name):
            yield forbidden_field(name, "may not be changed in an update.")


def check_event(event: Document) -> Iterator[Cause]:
    involved = event["involvedObject"].get("namespace", "")
    namespace = event["metadata"].get("namespace", "")
    if namespace != (involved or "default") and not (not involved and namespace in ("kube-system", "")):
        yield wrong("involvedObject.namespace", involved, "does not match event.namespace")

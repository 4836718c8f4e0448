"""A driver's ResourceReservation, and the write that creates it or replaces an old one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stowplan.objects.actions import Create, Patch
from stowplan.objects.applications import DRIVER, EXECUTOR, identity
from stowplan.objects.meta import ObjectMeta, OwnerReference
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import (
    GROUP,
    KIND,
    VERSION,
    Reserved,
    ResourceReservation,
    ResourceReservationSpec,
    reservation_of,
)
from stowplan.objects.spark import Executors, quantity_text

APP_ID = f"{GROUP}/app-id"


def planned(
    driver: Pod, node_name: str, needs: Executors, nodes: Sequence[str], existing: ResourceReservation | None
) -> ResourceReservation:
    """Return the reservation of a driver and its executors, one on each of these nodes. It replaces `existing`."""
    own = {resource: quantity_text(resource, amount) for resource, amount in driver.request.items()}
    slots = {DRIVER: Reserved(node_name, dict(own))}
    for number, name in enumerate(nodes, 1):
        slots[f"{EXECUTOR}-{number}"] = Reserved(name, dict(needs.resources))
    namespace, _, name = reservation_of(driver).rpartition("/")
    metadata = ObjectMeta(name=name, namespace=namespace) if existing is None else existing.metadata
    owner = OwnerReference("Pod", driver.name, driver.uid, "v1")
    application = identity(driver).application
    labels = {APP_ID: application} if application else {}
    metadata = msgspec.structs.replace(metadata, owner_references=(owner,), labels={**metadata.labels, **labels})
    return ResourceReservation(metadata=metadata, spec=ResourceReservationSpec(slots))


def written(planned: ResourceReservation) -> Create | Patch:
    """Return the write: a new object, or a patch of an existing one."""
    metadata, spec = planned.metadata, _spec(planned)
    owners = [
        {"apiVersion": each.api_version, "kind": each.kind, "name": each.name, "uid": each.uid}
        for each in metadata.owner_references
    ]
    if metadata.uid:
        body: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": metadata.uid},
            {"op": "add", "path": "/metadata/ownerReferences", "value": owners},
            {"op": "add", "path": "/spec", "value": spec},
        ]
        return Patch(kind=KIND, key=planned.key, body=body)
    head: dict[str, Any] = {"name": planned.name, "namespace": planned.namespace, "ownerReferences": owners}
    document = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {**head, "labels": metadata.labels}}
    return Create(kind=KIND, key=planned.key, body={**document, "spec": spec})


def _spec(planned: ResourceReservation) -> dict[str, Any]:
    reserved: Mapping[str, Reserved] = planned.spec.reservations
    return {
        "reservations": {name: {"node": each.node, "resources": each.quantities} for name, each in reserved.items()}
    }

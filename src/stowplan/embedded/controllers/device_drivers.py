"""Pretend drivers: the devices that nodes are said to have, published in resource slices, and prepared at once.

A node says in its annotation `stowplan.io/devices` what it has, as YAML:

    gpu.example.com: 8

or, with what the devices are like:

    gpu.example.com:
      count: 4
      attributes: {model: a100, ecc: true, numa: 1, driverVersion: {version: 1.2.0}}
      capacity: {memory: 80Gi}

Each driver publishes one pool for the node, named after the node, in slices of at most 128 devices: `gpu-0`, `gpu-1` …
When the annotation changes, so does the pool, with a new generation; when it goes, the slices go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    RecordEvent,
    SetStatus,
    UpdateObject,
)
from stowplan.embedded.controllers.resource_claims import CLAIMS
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.objects import bounded_yaml
from stowplan.objects.errors import StowplanError

DEVICES = "stowplan.io/devices"
SLICES = "resourceslices.resource.k8s.io"
MOST_DEVICES = 1024  # of a node and driver
_IN_A_SLICE = 128
_COMPONENT = "device-driver"
_EXAMPLE = "expected drivers with counts, such as `gpu.example.com: 8`"
_DRIVER = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class DeviceDrivers:
    """Publishes the devices of nodes, and prepares those that must be prepared. The keys are names of nodes."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == "nodes" and _text(change.before) != _text(change.now):
            return (change.key,)
        if change.collection == SLICES and change.now is None:
            owner = queries.controller_of(change.document)
            return (owner["name"],) if owner is not None and owner["kind"] == "Node" else ()
        return ()

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        node = self._store.get("nodes", key)
        if node is None or queries.terminating(node):
            return  # the slices go with the node
        try:
            wanted = pools(_text(node))
        except StowplanError as error:
            yield RecordEvent(node, "InvalidDevices", f"annotation {DEVICES}: {error}", _COMPONENT, "Warning")
            return
        published: dict[str, list[Document]] = {}
        for found in queries.owned(self._store, node, SLICES):
            published.setdefault(found["spec"]["driver"], []).append(found)
        for driver in sorted({*wanted, *published}):
            yield from _publish(node, driver, wanted.get(driver, []), published.get(driver, []))


class DevicePreparation:
    """Reports the devices of a reserved claim as prepared. The keys are those of claims."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        return (change.key,) if change.collection == CLAIMS and change.now is not None else ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        claim = self._store.get(CLAIMS, key)
        status = claim.get("status", {}) if claim is not None else {}
        if claim is None or not status.get("reservedFor") or "allocation" not in status:
            return
        devices = list(status.get("devices", ()))
        reported = {_place(each) for each in devices}
        for result in status["allocation"]["devices"].get("results", ()):
            if result.get("bindingConditions") and _place(result) not in reported:
                about = {name: result[name] for name in ("driver", "pool", "device", "shareID") if name in result}
                conditions: list[Document] = []
                for name in result["bindingConditions"]:
                    conditions = queries.with_condition(conditions, name, "True", now, "Prepared", "")
                devices.append({**about, "conditions": conditions})
        if devices != status.get("devices", []):
            yield SetStatus(CLAIMS, key, claim["metadata"]["uid"], {**status, "devices": devices})


def pools(text: str) -> dict[str, list[Document]]:
    """The devices of each driver, from the annotation of a node. Raises StowplanError if they cannot be read."""
    found = bounded_yaml.load(text) if text.strip() else {}
    if not isinstance(found, dict):
        raise StowplanError(f"found {type(found).__name__}; {_EXAMPLE}")
    return {str(driver): _devices(str(driver), about) for driver, about in found.items()}


def _devices(driver: str, about: Any) -> list[Document]:
    about = {"count": about} if isinstance(about, int) and not isinstance(about, bool) else about
    count = about.get("count") if isinstance(about, dict) else None
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_DEVICES:
        raise StowplanError(f"{driver}: the count must be a number from 0 to {MOST_DEVICES}; {_EXAMPLE}")
    if not _DRIVER.fullmatch(driver) or len(driver) > 63:
        raise StowplanError(f"{driver!r} is no name of a driver; {_EXAMPLE}")
    attributes, capacity = about.get("attributes") or {}, about.get("capacity") or {}
    if not isinstance(attributes, dict) or not isinstance(capacity, dict):
        raise StowplanError(f"{driver}: attributes and capacity must be mappings")
    like: Document = {}
    if attributes:
        like["attributes"] = {str(name): _attribute(value) for name, value in attributes.items()}
    if capacity:
        like["capacity"] = {str(name): {"value": str(value)} for name, value in capacity.items()}
    short = driver.partition(".")[0]
    return [{"name": f"{short}-{number}", **like} for number in range(count)]


def _attribute(value: Any) -> Document:
    """The value of an attribute; a mapping says its type, as in the API."""
    if isinstance(value, dict):
        return {str(name): each for name, each in value.items()}
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": str(value)}


def _publish(node: Document, driver: str, devices: list[Document], published: list[Document]) -> Iterator[Action]:
    parts = [devices[start : start + _IN_A_SLICE] for start in range(0, len(devices), _IN_A_SLICE)]
    published = sorted(published, key=lambda found: str(found["metadata"]["name"]))
    if [found["spec"].get("devices", []) for found in published] == parts:
        return
    name = node["metadata"]["name"]
    generation = max((found["spec"]["pool"]["generation"] for found in published), default=0) + 1
    pool = {"name": name, "generation": generation, "resourceSliceCount": len(parts)}
    for number, part in enumerate(parts):
        spec = {"driver": driver, "nodeName": name, "pool": pool, "devices": part}
        if number < len(published):
            yield UpdateObject(SLICES, {**published[number], "spec": spec})
        else:
            owner = {
                "apiVersion": "v1",
                "kind": "Node",
                "name": name,
                "uid": node["metadata"]["uid"],
                "controller": True,
            }
            metadata = {"name": f"{name}-{driver}-{number}", "ownerReferences": [owner]}
            refusal = RecordEvent(node, "InvalidDevices", f"{driver}: {{error}}", _COMPONENT, "Warning")
            yield CreateDocument(SLICES, "", {"metadata": metadata, "spec": spec}, None, (refusal,))
    for found in published[len(parts) :]:
        yield DeleteDocument(SLICES, found["metadata"]["name"], found["metadata"]["uid"])


def _text(node: Document | None) -> str:
    return "" if node is None else str(node["metadata"].get("annotations", {}).get(DEVICES, ""))


def _place(found: Document) -> tuple[Any, ...]:
    return tuple(found.get(name) for name in ("driver", "pool", "device", "shareID"))

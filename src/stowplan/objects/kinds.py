"""All kinds of objects, and how they are decoded.

JSON of an API server is decoded directly into the typed object. If that fails, it is decoded again without its nulls,
which Kubernetes reads as absent fields. If that fails too, the error names the path in the object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from stowplan.objects import (
    clusters,
    devices,
    nodes,
    placements,
    pod_groups,
    pods,
    reservations,
    storage,
    workload_policies,
    workloads,
)
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.quantity import Quantity, quantity

KINDS: dict[str, type[Object]] = {
    kind.__name__: kind
    for kind in (
        pods.Pod,
        nodes.Node,
        workloads.Namespace,
        workloads.Service,
        workloads.ReplicationController,
        workloads.ReplicaSet,
        workloads.StatefulSet,
        workloads.Deployment,
        workloads.PodDisruptionBudget,
        workloads.PriorityClass,
        storage.PersistentVolume,
        storage.PersistentVolumeClaim,
        storage.StorageClass,
        storage.CSINode,
        storage.CSIDriver,
        storage.CSIStorageCapacity,
        storage.VolumeAttachment,
        devices.DeviceClass,
        workload_policies.WorkloadPolicy,
        reservations.ResourceReservation,
        pod_groups.PodGroup,
        pod_groups.SigsPodGroup,
        clusters.ManagedCluster,
        clusters.ManagedClusterSet,
        clusters.ManagedClusterSetBinding,
        clusters.AddOnPlacementScore,
        placements.Placement,
        placements.PlacementDecision,
    )
}

NAMESAKES = {("PodGroup", "scheduling.x-k8s.io"): "SigsPodGroup"}  # kinds that share a name, by their API group

AnyObject = TypeVar("AnyObject", bound=Object)


def _custom(kind: type, found: Any) -> Any:
    if kind is Quantity:
        return quantity(found)
    raise NotImplementedError(kind)


_decoders = {kind: msgspec.json.Decoder(kind, dec_hook=_custom) for kind in KINDS.values()}


@cache
def decoder(kind: type[AnyObject]) -> msgspec.json.Decoder[AnyObject]:
    """Return the decoder of a kind that a plugin brings. Raises what msgspec raises for a type that it cannot use."""
    return msgspec.json.Decoder(kind, dec_hook=_custom)


def name_of(document: Mapping[str, Any]) -> str:
    """Return our name for the kind of a document."""
    kind, group = str(document.get("kind", "")), str(document.get("apiVersion", "")).partition("/")[0]
    return NAMESAKES.get((kind, group), kind)


def decode(kind: type[AnyObject], data: bytes | str) -> AnyObject:
    """Decode an object from API JSON."""
    try:
        found = _decoders.get(kind) or decoder(kind)
        return found.decode(data)  # type: ignore[return-value]
    except msgspec.ValidationError:
        return convert(kind, msgspec.json.decode(data))
    except msgspec.DecodeError as error:
        raise ConfigError(f"not a JSON object: {error}") from None


def convert(kind: type[AnyObject], data: Mapping[str, Any]) -> AnyObject:
    """Decode an object from plain Python values, for example from YAML."""
    try:
        return msgspec.convert(without_nulls(data), kind, dec_hook=_custom, strict=False)
    except msgspec.ValidationError as error:
        raise _explained(kind, data, error) from None


def without_nulls(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    if isinstance(data, list | tuple):
        return [without_nulls(value) for value in data]
    return data


def _explained(kind: type, data: Any, error: msgspec.ValidationError) -> ConfigError:
    problem, _, path = str(error).partition(" - at `$")
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
    where = f"{kind.__name__} {name}".strip() + f": {path.rstrip('`').lstrip('.')}" * bool(path)
    found = _unquoted(data, path.rstrip("`").lstrip("."))
    if found is None:
        return ConfigError(problem[:1].lower() + problem[1:], path=where)
    key, value = found
    text, quotes = json.dumps(value), "write it in quotes"
    remedy = quotes if isinstance(value, float) else f'{quotes}: "{text}"'  # 1.10 is read as 1.1
    return ConfigError(f"found {text}, expected a text", path=where.replace("[...]", f".{key}"), remedy=remedy)


def _unquoted(data: Any, path: str) -> tuple[str, Any] | None:
    """Return the label, or the annotation, that YAML reads as a number or as true or false."""
    if path not in ("metadata.labels[...]", "metadata.annotations[...]"):
        return None
    texts = data["metadata"][path[len("metadata.") : -len("[...]")]]
    return next(((str(key), value) for key, value in texts.items() if isinstance(value, bool | int | float)), None)

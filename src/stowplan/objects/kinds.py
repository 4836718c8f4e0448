"""All kinds of objects, and how they are decoded.

JSON of an API server is decoded directly into the typed object. If that fails, it is decoded again without its nulls,
which Kubernetes reads as absent fields, and with odd texts and times as Go reads them (`json_text`). If that fails
too, the error names the path in the object. Whatever is in a document, `decode` and `convert` raise nothing but
`ConfigError`: a document is one tenant's, and the program is everybody's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec

from stowplan.objects import (
    clusters,
    devices,
    finished_members,
    json_text,
    nodes,
    placements,
    pod_groups,
    pods,
    reservations,
    resource_claims,
    resource_slices,
    storage,
    workload_policies,
    workloads,
)
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.node_documents import NodeDecoder
from stowplan.objects.pod_documents import PodDecoder
from stowplan.objects.quantity import custom_value

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
        resource_slices.ResourceSlice,
        resource_claims.ResourceClaim,
        resource_claims.ResourceClaimTemplate,
        workload_policies.WorkloadPolicy,
        reservations.ResourceReservation,
        pod_groups.PodGroup,
        pod_groups.SigsPodGroup,
        finished_members.FinishedMember,
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


class ObjectDecoder(Protocol):
    def decode(self, text: bytes | str, /) -> Object: ...


_decoders: dict[type[Object], ObjectDecoder] = {
    kind: msgspec.json.Decoder(kind, dec_hook=custom_value) for kind in KINDS.values()
}
_decoders[pods.Pod], _decoders[nodes.Node] = PodDecoder(), NodeDecoder()


@cache
def decoder(kind: type[AnyObject]) -> msgspec.json.Decoder[AnyObject]:
    """Return the decoder of a kind that a plugin brings. Raises what msgspec raises for a type that it cannot use."""
    return msgspec.json.Decoder(kind, dec_hook=custom_value)


def name_of(document: Mapping[str, Any]) -> str:
    """Return our name for the kind of a document."""
    kind, group = str(document.get("kind", "")), str(document.get("apiVersion", "")).partition("/")[0]
    return NAMESAKES.get((kind, group), kind)


def decode(kind: type[AnyObject], data: bytes | str) -> AnyObject:
    """Decode an object from API JSON."""
    try:
        found = _decoders.get(kind) or decoder(kind)
        return found.decode(data)  # type: ignore[return-value]
    except Exception as error:
        return _decode_again(kind, data, error)


def _decode_again(kind: type[AnyObject], data: bytes | str, error: Exception) -> AnyObject:
    """Decode a document that could not be decoded as it is; seldom, so it may take longer."""
    text = data.encode(errors="replace") if isinstance(data, str) else data
    return convert(kind, decode_plain(text if isinstance(error, msgspec.ValidationError) else json_text.readable(text)))


def decode_plain(document: bytes) -> Any:
    """Decode JSON of an API server into plain Python values."""
    try:
        return msgspec.json.decode(document)
    except Exception:
        try:
            return msgspec.json.decode(json_text.readable(document))
        except Exception as error:
            raise ConfigError(f"not a JSON object: {error}") from None


def convert(kind: type[AnyObject], data: Mapping[str, Any]) -> AnyObject:
    """Decode an object from plain Python values, for example from YAML."""
    try:
        plain = without_nulls(data)
        try:
            return msgspec.convert(plain, kind, dec_hook=custom_value, strict=False)
        except msgspec.ValidationError:
            return msgspec.convert(_without_year_zero(plain), kind, dec_hook=custom_value, strict=False)
    except msgspec.ValidationError as error:
        raise _explained(kind, data, error) from None
    except RecursionError:
        raise ConfigError("it is nested too deep", path=kind.__name__) from None
    except Exception as error:  # a type of a plugin may run code of its own
        raise ConfigError(f"{type(error).__name__}: {error}", path=kind.__name__) from error


def without_nulls(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    if isinstance(data, list | tuple):
        return [without_nulls(value) for value in data]
    return data


_YEAR_ZERO = re.compile(r"0000(-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))")


def _without_year_zero(data: Any, name: str = "") -> Any:
    """Return the data with times of the year 0 in the year 1. Go has both, Python only the latter."""
    if isinstance(data, Mapping):
        kept = name in ("labels", "annotations")  # texts that only look like times
        return data if kept else {key: _without_year_zero(value, str(key)) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_year_zero(value, name) for value in data]
    return _YEAR_ZERO.sub(r"0001\1", data) if isinstance(data, str) and _YEAR_ZERO.fullmatch(data) else data


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
    plain = ((str(key), value) for key, value in texts.items() if isinstance(value, bool | int | float))
    return next((each for each in plain if abs(each[1]) < 2**63), None)  # Python writes no number of 5,000 digits

"""The shape of objects that explanations read as documents: leases, events, quotas, LimitRanges, workloads.

Only what is read is described. `checked` makes sure of it, so that whoever reads a document later finds what it needs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError

Json = dict[str, Any]


class _NamedObject(msgspec.Struct, kw_only=True):
    name: str = ""
    namespace: str = ""


class PlainDocument(msgspec.Struct, rename="camel", kw_only=True):
    metadata: _NamedObject = msgspec.field(default_factory=_NamedObject)
    spec: Json = {}
    status: Json = {}


class _LeaseSpec(msgspec.Struct, rename="camel", kw_only=True):
    holder_identity: str = ""
    lease_duration_seconds: float = 0


class LeaseDocument(PlainDocument):
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)  # type: ignore[assignment]


class _EventSeries(msgspec.Struct, rename="camel", kw_only=True):
    count: int = 0


class EventDocument(PlainDocument):
    regarding: Json = {}
    involved_object: Json = {}
    series: _EventSeries = msgspec.field(default_factory=_EventSeries)
    deprecated_count: int = 0
    count: int = 0
    source: Json = {}
    deprecated_source: Json = {}


class _LimitRangeItem(msgspec.Struct, rename="camel", kw_only=True):
    type: str = ""
    default: Json = {}
    default_request: Json = {}


class _LimitRangeSpec(msgspec.Struct, rename="camel", kw_only=True):
    limits: list[_LimitRangeItem] = []


class LimitRangeDocument(PlainDocument):
    spec: _LimitRangeSpec = msgspec.field(default_factory=_LimitRangeSpec)  # type: ignore[assignment]


class _ScopeTerm(msgspec.Struct, rename="camel", kw_only=True):
    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class _ScopeSelector(msgspec.Struct, rename="camel", kw_only=True):
    match_expressions: list[_ScopeTerm] = []


class _QuotaSpec(msgspec.Struct, rename="camel", kw_only=True):
    hard: Json = {}
    scopes: list[str] = []
    scope_selector: _ScopeSelector = msgspec.field(default_factory=_ScopeSelector)


class _QuotaStatus(msgspec.Struct, rename="camel", kw_only=True):
    used: Json = {}


class QuotaDocument(PlainDocument):
    spec: _QuotaSpec = msgspec.field(default_factory=_QuotaSpec)  # type: ignore[assignment]
    status: _QuotaStatus = msgspec.field(default_factory=_QuotaStatus)  # type: ignore[assignment]


class _WorkloadSpec(msgspec.Struct, rename="camel", kw_only=True):
    replicas: int = 0
    parallelism: int = 0
    completions: int = 0
    template: Json = {}


class _WorkloadStatus(msgspec.Struct, rename="camel", kw_only=True):
    succeeded: int = 0
    desired_number_scheduled: int = 0
    conditions: list[Json] = []


class WorkloadDocument(PlainDocument):
    spec: _WorkloadSpec = msgspec.field(default_factory=_WorkloadSpec)  # type: ignore[assignment]
    status: _WorkloadStatus = msgspec.field(default_factory=_WorkloadStatus)  # type: ignore[assignment]


SHAPES: dict[str, type[PlainDocument]] = {
    "Lease": LeaseDocument,
    "Event": EventDocument,
    "LimitRange": LimitRangeDocument,
    "ResourceQuota": QuotaDocument,
    "DaemonSet": WorkloadDocument,
    "Deployment": WorkloadDocument,
    "Job": WorkloadDocument,
    "ReplicaSet": WorkloadDocument,
    "ReplicationController": WorkloadDocument,
    "StatefulSet": WorkloadDocument,
}


def checked(kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without nulls. Raises ConfigError, with the path, if what is read of it has another type."""
    found: dict[str, Any] = kinds.without_nulls(document)
    if kind not in SHAPES:
        return found
    try:
        msgspec.convert(found, SHAPES[kind], strict=False)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise _explained(kind, found, problem, path.rstrip("`").lstrip(".")) from None
    return found


def _explained(kind: str, document: Mapping[str, Any], problem: str, path: str) -> ConfigError:
    metadata = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    where = f"{kind} {name}".strip() + f": {path}" * bool(path)
    value: Any = document
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return ConfigError(problem[:1].lower() + problem[1:], path=where)
    expected = problem.partition(", got ")[0].removeprefix("Expected ").strip("`")
    return ConfigError(f"found {json.dumps(value, default=str)[:MOST_SHOWN]}", path=where, remedy=WANTED[expected])


MOST_SHOWN = 60
WANTED = defaultdict(
    lambda: "write what the API has there",
    {
        "int": "write a whole number",
        "float": "write a number",
        "str": "write a text",
        "object": "write a mapping",
        "array": "write a list",
    },
)

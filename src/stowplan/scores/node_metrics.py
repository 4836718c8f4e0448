"""What nodes really use, as metrics-server says: a NodeMetricsList of metrics.k8s.io.

It lacks nodes that it has not measured yet, and nodes that do not answer it.
"""

from __future__ import annotations

import msgspec

from stowplan.objects import quantity
from stowplan.objects.errors import ConfigError

NODE_METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"
UsedByNode = dict[str, dict[str, int]]  # by node and resource; cpu in thousandths, everything else in whole units


class _Metadata(msgspec.Struct):
    name: str = ""


class _NodeMetrics(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    usage: dict[str, str] = {}


class _NodeMetricsList(msgspec.Struct):
    kind: str = ""
    items: list[_NodeMetrics] | None = None


def used_by_node(document: bytes) -> UsedByNode:
    """Read a NodeMetricsList. Raises ConfigError if this is none."""
    try:
        found = msgspec.json.decode(document, type=_NodeMetricsList)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ConfigError(f"found no NodeMetricsList: {error}", path=NODE_METRICS) from None
    if found.kind != "NodeMetricsList":
        raise ConfigError(f"kind: found {found.kind!r}, expected NodeMetricsList", path=NODE_METRICS)
    return {each.metadata.name: _amounts(each) for each in found.items or ()}


def _amounts(metrics: _NodeMetrics) -> dict[str, int]:
    try:
        return {name: quantity.of(name, text) for name, text in metrics.usage.items()}
    except ValueError as error:
        raise ConfigError(str(error), path=f"{NODE_METRICS}: usage of {metrics.metadata.name}") from None

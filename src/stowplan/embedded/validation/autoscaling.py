"""HorizontalPodAutoscalers: the target, the bounds and the metrics."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required, unsupported

_SOURCES = {
    "ContainerResource": "containerResource", "External": "external", "Object": "object", "Pods": "pods",
    "Resource": "resource",
}  # fmt: skip
_POSITIVE = "must be greater than 0"
_SOURCE = "must populate information for the given metric source"


def check(autoscaler: Document) -> Iterator[StatusCause]:
    spec = autoscaler["spec"]
    if spec["minReplicas"] < 1:
        yield invalid_value("spec.minReplicas", spec["minReplicas"], "must be greater than or equal to 1")
    if spec["maxReplicas"] == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif spec["maxReplicas"] < 0:
        yield invalid_value("spec.maxReplicas", spec["maxReplicas"], _POSITIVE)
    if spec["maxReplicas"] < spec["minReplicas"]:
        why = "must be greater than or equal to `minReplicas`"
        yield invalid_value("spec.maxReplicas", spec["maxReplicas"], why)
    for name in ("kind", "name"):
        if not spec["scaleTargetRef"].get(name):
            yield required(f"spec.scaleTargetRef.{name}")
    for index, metric in enumerate(spec["metrics"]):
        yield from _metric(metric, f"spec.metrics[{index}]")


def _metric(metric: Document, field: str) -> Iterator[StatusCause]:
    kind = metric.get("type", "")
    if not kind:
        yield required(f"{field}.type", "must specify a metric source type")
    elif kind not in _SOURCES:
        yield unsupported(f"{field}.type", kind, sorted(_SOURCES))
    elif _SOURCES[kind] not in metric:
        yield required(f"{field}.{_SOURCES[kind]}", _SOURCE)
    else:
        yield from _source(metric[_SOURCES[kind]], kind, f"{field}.{_SOURCES[kind]}")


def _source(source: Document, kind: str, field: str) -> Iterator[StatusCause]:
    resource = kind in ("ContainerResource", "Resource")
    if resource and not source.get("name"):
        yield required(f"{field}.name", "must specify a resource name")
    target = source.get("target", {})
    if not target.get("type"):
        yield required(f"{field}.target.type", "must specify a metric target type")
    elif target["type"] not in ("Utilization", "Value", "AverageValue"):
        why = "must be either Utilization, Value, or AverageValue"
        yield invalid_value(f"{field}.target.type", target["type"], why)
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield invalid_value(f"{field}.target.averageUtilization", share, _POSITIVE)
    if resource and share is None and "averageValue" not in target:
        why = "must set either a target raw value or a target utilization"
        yield required(f"{field}.target.averageUtilization", why)

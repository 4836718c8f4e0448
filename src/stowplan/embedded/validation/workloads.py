"""The kinds that make pods: a selector that finds what the template makes, and that stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.errors import Cause, forbidden_field, required, unsupported, wrong
from stowplan.embedded.validation.pods import check_spec
from stowplan.objects import selectors

Document: TypeAlias = dict[str, Any]
_NOT_NEGATIVE = "must be greater than or equal to 0"
_STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_SET_FREE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip


def selector(found: Document | None) -> selectors.Selector | None:
    """A label selector of a document, compiled; None for one that is missing or wrong."""
    if found is None:
        return None
    return selectors.compile_selector(msgspec.convert(found, selectors.LabelSelector))


def check(workload: Document) -> Iterator[Cause]:
    spec = workload["spec"]
    yield from _replicas(spec)
    yield from _selected(spec)
    yield from check_spec(spec["template"]["spec"], "spec.template.spec")
    if (policy := spec["template"]["spec"].get("restartPolicy")) != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ["Always"])


def check_deployment(deployment: Document) -> Iterator[Cause]:
    yield from check(deployment)
    strategy = deployment["spec"]["strategy"]
    if strategy["type"] not in ("Recreate", "RollingUpdate"):
        yield unsupported("spec.strategy.type", strategy["type"], ["Recreate", "RollingUpdate"])
    if strategy["type"] == "Recreate" and strategy.get("rollingUpdate"):
        why = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden_field("spec.strategy.rollingUpdate", why)
    rolling = strategy.get("rollingUpdate", {})
    for name in ("maxUnavailable", "maxSurge"):
        yield from check_share(f"spec.strategy.rollingUpdate.{name}", rolling.get(name, 0))
    if strategy["type"] == "RollingUpdate" and all(rolling.get(name) in (0, "0%") for name in rolling):
        yield wrong("spec.strategy.rollingUpdate.maxUnavailable", 0, "may not be 0 when `maxSurge` is 0")


def check_share(field: str, value: int | str) -> Iterator[Cause]:
    """A number or a percentage."""
    if isinstance(value, int):
        if value < 0:
            yield wrong(field, value, _NOT_NEGATIVE)
    elif not (value.endswith("%") and value[:-1].isdigit()):
        yield wrong(field, value, "must be an integer or percentage (e.g '5%%')")


def _replicas(spec: Document) -> Iterator[Cause]:
    if spec.get("replicas", 0) < 0:
        yield wrong("spec.replicas", spec["replicas"], _NOT_NEGATIVE)


def _selected(spec: Document) -> Iterator[Cause]:
    wanted = spec.get("selector")
    labels = spec["template"].get("metadata", {}).get("labels")
    if wanted is None:
        yield required("spec.selector")
    elif not wanted.get("matchLabels") and not wanted.get("matchExpressions"):
        yield wrong("spec.selector", wanted, "empty selector is invalid for deployment")
    if not labels or not selectors.matches(selector(wanted), labels):
        yield wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def check_job(job: Document) -> Iterator[Cause]:
    spec = job["spec"]
    for name in ("completions", "parallelism", "backoffLimit"):
        if spec.get(name, 0) < 0:
            yield wrong(f"spec.{name}", spec[name], _NOT_NEGATIVE)
    if spec.get("completionMode") not in ("Indexed", "NonIndexed"):
        yield unsupported("spec.completionMode", spec.get("completionMode"), ["NonIndexed", "Indexed"])
    elif spec["completionMode"] == "Indexed" and "completions" not in spec:
        yield required("spec.completions", "when completion mode is Indexed")
    yield from check_spec(spec["template"]["spec"], "spec.template.spec")
    if (policy := spec["template"]["spec"].get("restartPolicy")) not in ("OnFailure", "Never"):
        yield unsupported("spec.template.spec.restartPolicy", policy, ["OnFailure", "Never"])


def check_replication_controller(controller: Document) -> Iterator[Cause]:
    spec = controller["spec"]
    yield from _replicas(spec)
    labels = spec["template"].get("metadata", {}).get("labels") or {}
    wanted = spec.get("selector") or {}
    if not wanted:
        yield required("spec.selector")
    elif not wanted.items() <= labels.items():
        yield wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from check_spec(spec["template"]["spec"], "spec.template.spec")


def check_selector(workload: Document, old: Document) -> Iterator[Cause]:
    if workload["spec"].get("selector") != old["spec"].get("selector"):
        yield wrong("spec.selector", workload["spec"].get("selector"), "field is immutable")


def check_stateful_set_update(workload: Document, old: Document) -> Iterator[Cause]:
    def frozen(document: Document) -> Document:
        return {key: value for key, value in document["spec"].items() if key not in _STATEFUL_SET_FREE}

    if frozen(workload) != frozen(old):
        yield forbidden_field("spec", _STATEFUL_SET)


def check_job_update(job: Document, old: Document) -> Iterator[Cause]:
    yield from check_selector(job, old)
    if job["spec"].get("completions") != old["spec"].get("completions") and job["spec"]["completionMode"] != "Indexed":
        yield wrong("spec.completions", job["spec"].get("completions"), "field is immutable")
    if job["spec"]["template"] != old["spec"]["template"] and not old["spec"].get("suspend"):
        yield wrong("spec.template", "…", "field is immutable")

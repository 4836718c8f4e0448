"""The kinds with a pod template: the selector matches the template, and is immutable."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, forbidden_field, invalid_value, required, unsupported
from stowplan.embedded.numbers import natural
from stowplan.embedded.validation.pods import check_spec
from stowplan.objects import selectors

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
    """The compiled label selector of a document; None if it is missing or invalid."""
    if found is None:
        return None
    return selectors.compile_selector(msgspec.convert(found, selectors.LabelSelector))


def check(workload: Document) -> Iterator[StatusCause]:
    spec = workload["spec"]
    yield from _replicas(spec)
    yield from _selected(spec)
    claims = frozenset(str(each["metadata"].get("name", "")) for each in spec.get("volumeClaimTemplates", ()))
    yield from check_spec(spec["template"]["spec"], "spec.template.spec", claims)
    if (policy := spec["template"]["spec"].get("restartPolicy")) != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ["Always"])


def check_deployment(deployment: Document) -> Iterator[StatusCause]:
    yield from check(deployment)
    strategy = deployment["spec"]["strategy"]
    if strategy["type"] not in ("Recreate", "RollingUpdate"):
        yield unsupported("spec.strategy.type", strategy["type"], ["Recreate", "RollingUpdate"])
    if strategy["type"] == "Recreate" and strategy.get("rollingUpdate"):
        why = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden_field("spec.strategy.rollingUpdate", why)
    rolling = strategy.get("rollingUpdate", {})
    for name in ("maxUnavailable", "maxSurge"):
        yield from check_int_or_percent(f"spec.strategy.rollingUpdate.{name}", rolling.get(name, 0))
    if strategy["type"] == "RollingUpdate" and all(rolling.get(name) in (0, "0%") for name in rolling):
        yield invalid_value("spec.strategy.rollingUpdate.maxUnavailable", 0, "may not be 0 when `maxSurge` is 0")
    yield from check_at_most_all("spec.strategy.rollingUpdate.maxUnavailable", rolling.get("maxUnavailable", 0))


def check_int_or_percent(field: str, value: int | str) -> Iterator[StatusCause]:
    """Check an integer or a percentage."""
    if isinstance(value, int):
        if value < 0:
            yield invalid_value(field, value, _NOT_NEGATIVE)
    elif natural(value.removesuffix("%"), -1) < 0 or not value.endswith("%"):
        yield invalid_value(field, value, "must be an integer or percentage (e.g '5%%')")


def check_at_most_all(field: str, value: int | str) -> Iterator[StatusCause]:
    """Check that a percentage is one of something that is there."""
    if isinstance(value, str) and natural(value.removesuffix("%"), 0) > 100:
        yield invalid_value(field, value, "must not be greater than 100%")


def _replicas(spec: Document) -> Iterator[StatusCause]:
    if spec.get("replicas", 0) < 0:
        yield invalid_value("spec.replicas", spec["replicas"], _NOT_NEGATIVE)


def _selected(spec: Document) -> Iterator[StatusCause]:
    label_selector = spec.get("selector")
    labels = spec["template"].get("metadata", {}).get("labels")
    if label_selector is None:
        yield required("spec.selector")
    elif not label_selector.get("matchLabels") and not label_selector.get("matchExpressions"):
        yield invalid_value("spec.selector", label_selector, "empty selector is invalid for deployment")
    if not labels or not selectors.matches(selector(label_selector), labels):
        yield invalid_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def check_job(job: Document) -> Iterator[StatusCause]:
    spec = job["spec"]
    for name in ("completions", "parallelism", "backoffLimit"):
        if spec.get(name, 0) < 0:
            yield invalid_value(f"spec.{name}", spec[name], _NOT_NEGATIVE)
    if spec.get("completionMode") not in ("Indexed", "NonIndexed"):
        yield unsupported("spec.completionMode", spec.get("completionMode"), ["NonIndexed", "Indexed"])
    elif spec["completionMode"] == "Indexed" and "completions" not in spec:
        yield required("spec.completions", "when completion mode is Indexed")
    yield from check_spec(spec["template"]["spec"], "spec.template.spec")
    yield from check_job_restarts(spec["template"]["spec"], "spec.template.spec")


def check_job_restarts(spec: Document, field: str) -> Iterator[StatusCause]:
    """The pods of a job must end."""
    policy = spec.get("restartPolicy")
    if policy == "Always":
        yield required(f"{field}.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(f"{field}.restartPolicy", policy, ["OnFailure", "Never"])


def check_replication_controller(controller: Document) -> Iterator[StatusCause]:
    spec = controller["spec"]
    yield from _replicas(spec)
    labels = spec["template"].get("metadata", {}).get("labels") or {}
    label_selector = spec.get("selector") or {}
    if not label_selector:
        yield required("spec.selector")
    elif not label_selector.items() <= labels.items():
        yield invalid_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from check_spec(spec["template"]["spec"], "spec.template.spec")


def check_selector(workload: Document, old: Document) -> Iterator[StatusCause]:
    if workload["spec"].get("selector") != old["spec"].get("selector"):
        yield invalid_value("spec.selector", workload["spec"].get("selector"), "field is immutable")


def check_stateful_set_update(workload: Document, old: Document) -> Iterator[StatusCause]:
    def immutable(document: Document) -> Document:
        return {key: value for key, value in document["spec"].items() if key not in _STATEFUL_SET_FREE}

    if immutable(workload) != immutable(old):
        yield forbidden_field("spec", _STATEFUL_SET)


def check_job_update(job: Document, old: Document) -> Iterator[StatusCause]:
    yield from check_selector(job, old)
    if job["spec"].get("completions") != old["spec"].get("completions") and job["spec"]["completionMode"] != "Indexed":
        yield invalid_value("spec.completions", job["spec"].get("completions"), "field is immutable")
    if job["spec"]["template"] != old["spec"]["template"] and not old["spec"].get("suspend"):
        yield invalid_value("spec.template", "…", "field is immutable")

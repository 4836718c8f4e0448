"""Workloads that cannot create all their pods: a quota refuses them, or their controller says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stowplan.apps.explain.admission import REPLICAS, Admission
from stowplan.apps.explain.sources import ObjectSource
from stowplan.diagnosis.patches import found_at
from stowplan.diagnosis.remedy import ObjectChange
from stowplan.framework.causes import Cause
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod

FAILURE = "replica-failure"
_ENDED = ("Complete", "SuccessCriteriaMet", "Failed", "FailureTarget", "Suspended")  # conditions of a Job


@dataclass(frozen=True)
class Shortage:
    """A workload with fewer pods than it wants, and why it cannot create more."""

    kind: str
    key: str
    wanted: int
    existing: int
    cause: Cause
    commands: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return f"{self.kind.lower()} {self.key} has {self.existing} of {self.wanted} pods: {self.cause.text}."

    def as_json(self) -> dict[str, Any]:
        namespace, _, name = self.key.rpartition("/")
        cause = {"plugin": "", "code": self.cause.code, "text": self.cause.text, "details": dict(self.cause.details)}
        return {
            "kind": self.kind,
            "namespace": namespace,
            "name": name,
            "wanted": self.wanted,
            "existing": self.existing,
            "sentence": self.sentence,
            "cause": cause,
            "commands": list(self.commands),
        }


class Shortages:
    """`admission`: what the API server would do in some namespaces. `commands`: how to make changes."""

    def __init__(
        self,
        source: ObjectSource,
        admission: Callable[[Iterable[str]], Admission],
        commands: Callable[[Sequence[ObjectChange]], tuple[str, ...]],
    ) -> None:
        self._source, self._admission, self._commands = source, admission, commands

    def of(self, kind: str, key: str, pods: Iterable[Pod]) -> Shortage | None:
        """Return why a workload has too few pods; None if it has all, or nothing is known against more."""
        document = self._source.document(kind, key)
        existing = sum(not pod.finished and not pod.terminating for pod in pods)
        wanted = 0 if document is None else wanted_pods(kind, document)
        if document is None or existing >= wanted:
            return None
        found = self._by_quota(document, key.partition("/")[0], wanted - existing)
        said = _failure(document)
        if found is None and said:
            found = Cause(FAILURE, said, {}), ()
        return None if found is None else Shortage(kind, key, wanted, existing, *found)

    def _by_quota(self, owner: Mapping[str, Any], namespace: str, missing: int) -> tuple[Cause, tuple[str, ...]] | None:
        template = found_at(owner, ("spec", "template"))
        if not isinstance(template, Mapping):
            return None
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": template.get("spec")}
        try:
            made = self._admission([namespace]).submit(pod, "", namespace)
        except ConfigError:
            return None  # what is wrong with the template is not about quotas
        refused = None if made is None else next(iter(made.refused.values()), None)
        if made is None or refused is None:
            return None
        return refused.cause, self._commands(made.quotas.raised(made.pods * missing)) if refused.shares else ()


def wanted_pods(kind: str, document: Mapping[str, Any]) -> int:
    """Return how many pods a workload should have now; 0 if that is not known. A DaemonSet's controller says it."""
    if kind not in REPLICAS:
        return int(found_at(document, ("status", "desiredNumberScheduled")) or 0)
    number = found_at(document, ("spec", REPLICAS[kind]))
    wanted = 1 if number is None else int(number)
    total = found_at(document, ("spec", "completions")) if kind == "Job" else None
    done = found_at(document, ("status", "succeeded")) or 0
    if _is_over(document) or (kind == "Job" and total is None and done):
        return 0
    return wanted if total is None else min(wanted, int(total) - int(done))


def _is_over(document: Mapping[str, Any]) -> bool:
    """True for a Job that is suspended, complete or failed: it makes no more pods."""
    conditions = found_at(document, ("status", "conditions")) or ()
    ended = any(each.get("type") in _ENDED and each.get("status") == "True" for each in conditions)
    return ended or bool(found_at(document, ("spec", "suspend")))


def _failure(document: Mapping[str, Any]) -> str:
    """Return what the controller says of pods that it cannot create."""
    for each in found_at(document, ("status", "conditions")) or ():
        if each.get("type") == "ReplicaFailure" and each.get("status") == "True":
            return str(each.get("message", "")).rstrip(".")
    return ""

"""Which pods a ResourceQuota would refuse: the API server counts what the pods of a namespace ask for.

What is used is what the status of the quota says; without a status it is counted from the pods of the namespace. Pods
that are admitted here are counted for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedies.lower_request import amount_text
from stowplan.diagnosis.remedy import Operation, PatchObject
from stowplan.framework.causes import Cause
from stowplan.objects import quantity, requests
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import NANO

CODE, MUST_SPECIFY = "quota", "quota-unspecified"
PODS = ("pods", "count/pods")
COMPUTE = ("cpu", "memory")  # a quota for these refuses pods that do not say how much they want


@dataclass(frozen=True)
class Share:
    """One resource of a quota. Amounts are in nano-units."""

    resource: str
    requested: int
    used: int
    hard: int

    def text(self, amount: int) -> str:
        name = plain_name(self.resource)
        return amount_text(name, amount // (NANO // 1000) if name == "cpu" else amount // NANO)


@dataclass(frozen=True)
class QuotaRefusal:
    """Why a quota refuses a pod: it is exceeded, or the pod does not say what it wants (`unspecified`)."""

    key: str  # namespace/name of the quota
    shares: tuple[Share, ...] = ()
    unspecified: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def cause(self) -> Cause:
        if self.unspecified:
            text = f"quota {self.name} wants every container to specify {', '.join(self.unspecified)}"
            return Cause(MUST_SPECIFY, text, {"quota": self.name, "resources": self.unspecified})
        told = "; ".join(
            f"{each.text(each.hard)} of {each.resource}, {each.text(each.used)} is used, the pod wants "
            f"{each.text(each.requested)}"
            for each in self.shares
        )
        resources = {
            each.resource: {
                "requested": each.text(each.requested), "used": each.text(each.used), "hard": each.text(each.hard)
            }
            for each in self.shares
        }  # fmt: skip
        return Cause(CODE, f"quota {self.name} allows {told}", {"quota": self.name, "resources": resources})

    @property
    def message(self) -> str:
        """What the API server says."""
        if self.unspecified:
            return f"failed quota: {self.name}: must specify {','.join(self.unspecified)}"
        asked, used, hard = (
            ",".join(f"{each.resource}={each.text(amount)}" for each, amount in zip(self.shares, amounts, strict=True))
            for amounts in zip(*((each.requested, each.used, each.hard) for each in self.shares), strict=True)
        )
        return f"exceeded quota: {self.name}, requested: {asked}, used: {used}, limited: {hard}"


class Quotas:
    """`documents`: the ResourceQuotas of some namespaces. `pods`: those of the cluster."""

    def __init__(self, documents: Iterable[Mapping[str, Any]] = (), pods: Iterable[Pod] = ()) -> None:
        self._pods, self._quotas = list(pods), list[_Quota]()
        self._about: dict[str, list[_Quota]] = {}  # by the key of a pod that was refused
        for each in documents:
            self.add(each)

    def add(self, document: Mapping[str, Any]) -> None:
        namespace = (document.get("metadata") or {}).get("namespace")
        there = [pod for pod in self._pods if pod.namespace == namespace and not pod.finished]
        self._quotas.append(_Quota(document, there))

    def admit(self, pod: Pod, document: Mapping[str, Any]) -> QuotaRefusal | None:
        """Return why a pod is refused; if it is not, count it, and return None. `document`: of the pod."""
        found = [each for each in self._quotas if each.is_about(pod, document)]
        refused = next(filter(None, (each.refusal(pod) for each in found)), None)
        for each in found if refused is None else ():
            each.count(pod)
        if refused is not None:
            self._about[pod.key] = found
        return refused

    def raised(self, pods: Iterable[Pod]) -> tuple[PatchObject, ...]:
        """Return the changes of quotas after which pods that were refused are admitted, all of them together."""
        wanted = dict[_Quota, list[Pod]]()
        for pod in pods:
            for each in self._about.get(pod.key, ()):
                wanted.setdefault(each, []).append(pod)
        return tuple(filter(None, (each.raised(found) for each, found in wanted.items())))

    def would_admit(self, pods: Sequence[Pod]) -> bool:
        """True if pods that were refused, and are changed now, are admitted, all of them together."""
        quotas = dict.fromkeys(each for pod in pods for each in self._about.get(pod.key, ()))
        specified = all(each.refusal(pod) is None for pod in pods for each in self._about.get(pod.key, ()))
        return specified and all(each.raised(pods) is None for each in quotas)


class _Quota:
    def __init__(self, document: Mapping[str, Any], pods: Iterable[Pod]) -> None:
        metadata, spec, status = (document.get(part) or {} for part in ("metadata", "spec", "status"))
        self._namespace = str(metadata.get("namespace", ""))
        self._key = f"{self._namespace}/{metadata.get('name', '')}"
        self._scopes = list(_scopes(spec))
        self._hard = _amounts(spec.get("hard") or {})
        self._used = _amounts(status.get("used") or {})
        if "used" not in status:
            for pod in pods:
                if self.is_about(pod, {}):
                    self.count(pod)

    def is_about(self, pod: Pod, document: Mapping[str, Any]) -> bool:
        return pod.namespace == self._namespace and all(_in_scope(pod, document, each) for each in self._scopes)

    def count(self, pod: Pod) -> None:
        for name, amount in self._usage(pod).items():
            self._used[name] = self._used.get(name, 0) + amount

    def refusal(self, pod: Pod) -> QuotaRefusal | None:
        unspecified = tuple(name for name in self._hard if _is_unspecified(pod, name))
        if unspecified:
            return QuotaRefusal(self._key, unspecified=unspecified)
        shares = (
            Share(name, amount, self._used.get(name, 0), self._hard[name])
            for name, amount in self._usage(pod).items()
            if amount
        )
        exceeded = tuple(each for each in shares if each.used + each.requested > each.hard)
        return QuotaRefusal(self._key, exceeded) if exceeded else None

    def raised(self, pods: Iterable[Pod]) -> PatchObject | None:
        """Return the change after which all these pods are admitted; None if none is needed."""
        wanted = dict(self._used)
        for pod in pods:
            for name, amount in self._usage(pod).items():
                wanted[name] = wanted.get(name, 0) + amount
        operations = [
            Operation("replace", pointer("spec", "hard", name), Share(name, 0, 0, hard).text(wanted[name]))
            for name, hard in self._hard.items()
            if wanted.get(name, 0) > max(hard, self._used.get(name, 0))
        ]
        return PatchObject("ResourceQuota", self._key, tuple(operations)) if operations else None

    def _usage(self, pod: Pod) -> dict[str, int]:
        """What a pod uses of this quota, in nano-units."""
        asked, limited = requests.total(pod), requests.total(_with_limits(pod))
        found = {}
        for name in self._hard:
            if name in PODS:
                found[name] = NANO
            elif name.startswith("limits."):
                found[name] = limited.get(plain_name(name), 0)
            elif name.startswith(("requests.", "hugepages-")) or name in (*COMPUTE, "ephemeral-storage"):
                found[name] = asked.get(plain_name(name), 0)
        return found


def plain_name(resource: str) -> str:
    return resource.removeprefix("requests.").removeprefix("limits.").removeprefix("count/")


def _amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    found = {}
    for name, text in quantities.items():
        try:
            found[str(name)] = quantity.nanos(str(text))
        except ValueError:
            continue  # the API server has no such quota
    return found


def _with_limits(pod: Pod) -> Pod:
    """Return a pod that requests its limits."""

    def limited(container: Any) -> Any:
        resources = msgspec.structs.replace(container.resources, requests=container.resources.limits)
        return msgspec.structs.replace(container, resources=resources)

    containers = tuple(map(limited, pod.spec.containers))
    starting = tuple(map(limited, pod.spec.init_containers))
    spec = msgspec.structs.replace(pod.spec, containers=containers, init_containers=starting, overhead={})
    return msgspec.structs.replace(pod, spec=spec)


def _is_unspecified(pod: Pod, resource: str) -> bool:
    name = plain_name(resource)
    if name not in COMPUTE or resource.startswith("count/"):
        return False
    kind = "limits" if resource.startswith("limits.") else "requests"
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(name not in getattr(each.resources, kind) for each in containers)


# -- which pods a quota is about


def _scopes(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for each in spec.get("scopes") or ():
        yield str(each), "Exists", ()
    for each in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        yield str(each.get("scopeName")), str(each.get("operator")), tuple(each.get("values") or ())


def _in_scope(pod: Pod, document: Mapping[str, Any], scope: tuple[str, str, tuple[str, ...]]) -> bool:
    name, operator, values = scope
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if name in ("BestEffort", "NotBestEffort"):
        asks = any(each.resources.requests or each.resources.limits for each in containers)
        return asks == (name == "NotBestEffort")
    if name in ("Terminating", "NotTerminating"):
        ends = (document.get("spec") or {}).get("activeDeadlineSeconds") is not None
        return ends == (name == "Terminating")
    if name != "PriorityClass":
        return False  # pod affinity across namespaces: not looked at
    found = pod.spec.priority_class_name
    answers = {"In": found in values, "NotIn": found not in values, "Exists": bool(found), "DoesNotExist": not found}
    return answers.get(operator, False)

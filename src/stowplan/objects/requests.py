"""The resource requests of a pod: containers, sidecars, init containers, pod-level resources, overhead, resizes.

    running   the sum over containers and sidecars
    starting  the most that any init container needs, with the sidecars started before it
    request   the larger of the two; pod-level requests replace it; then overhead is added

Sums are exact, in nano-units; rounding happens once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from stowplan.objects.pod_parts import Container, ContainerStatus
from stowplan.objects.quantity import NANO, nanos, whole
from stowplan.objects.selectors import is_label_key

if TYPE_CHECKING:
    from stowplan.objects.pods import Pod

Amounts = dict[str, int]

MOST_NAMES = 1024  # of resources about which the answer is kept

# What a container without a request counts for in scores (but not in filters).
PRESUMED: Mapping[str, int] = {"cpu": NANO // 10, "memory": 200 * 1024 * 1024 * NANO}


def incoming(pod: Pod) -> Amounts:
    """Return the requests of a pod without a node, in the units of the columns."""
    return rounded(total(pod))


def running(pod: Pod) -> Amounts:
    """Return the requests of a pod on a node, including resizes in progress."""
    return rounded(total(pod, with_status=True))


def running_presumed(pod: Pod) -> tuple[int, int]:
    """Return cpu and memory of a pod on a node, with defaults for missing requests."""
    presumed = PRESUMED
    if pod_level(pod):
        asked = total(pod, with_status=True)
        presumed = {name: amount for name, amount in PRESUMED.items() if name not in asked}
    sums = total(pod, with_status=True, presumed=presumed)
    return whole(sums.get("cpu", 0), "cpu"), whole(sums.get("memory", 0), "memory")


def scored(pod: Pod) -> Amounts:
    """Return the requests for NodeResourcesFit's score: with defaults for missing requests, and with every resource.

    Pod-level resources are ignored, as in kube-scheduler since 1.33.
    """
    sums = total(pod, with_pod_level=False, presumed=PRESUMED)
    return {name: whole(amount, name) for name, amount in sums.items()}


def balanced(pod: Pod) -> Amounts:
    """Return the requests for NodeResourcesBalancedAllocation, including resizes in progress."""
    return {name: whole(amount, name) for name, amount in total(pod, with_status=True).items()}


def of_plain(pod: Pod) -> Amounts | None:
    """Return the requests that are the same in all these ways, every resource; None if they may differ.

    They are the same if nothing is presumed, nothing is being resized, and the pod itself requests nothing.
    """
    spec, status = pod.spec, pod.status
    if spec.resources.requests or status.resources is not None or status.container_statuses:
        return None
    if status.init_container_statuses:
        return None
    for container in (*spec.containers, *spec.init_containers):
        if not PRESUMED.keys() <= container.resources.requests.keys():
            return None
    if len(spec.containers) == 1 and not spec.init_containers and not spec.overhead:
        return {name: whole(nanos(text), name) for name, text in spec.containers[0].resources.requests.items()}
    return {name: whole(amount, name) for name, amount in total(pod).items()}


def counted(amounts: Mapping[str, int]) -> Amounts:
    """Return those of the amounts that nodes account for."""
    return {name: amount for name, amount in amounts.items() if is_counted(name)}


def rounded(amounts: Mapping[str, int]) -> Amounts:
    return {name: whole(amount, name) for name, amount in amounts.items() if is_counted(name)}


@lru_cache(maxsize=MOST_NAMES)
def is_counted(resource: str) -> bool:
    """True for resources that nodes account for."""
    return resource in ("cpu", "memory", "ephemeral-storage") or is_scalar(resource)


@lru_cache(maxsize=MOST_NAMES)
def is_scalar(resource: str) -> bool:
    """True for extended resources, huge pages, attachable volumes and resources of kubernetes.io."""
    if resource.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in resource:
        return True
    return is_extended(resource)


def is_extended(resource: str) -> bool:
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return is_label_key("requests." + resource)


def pod_level(pod: Pod) -> bool:
    """True if the pod has pod-level requests."""
    return any(_is_pod_level(name) for name in pod.spec.resources.requests)


def _is_pod_level(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def total(
    pod: Pod, *, with_status: bool = False, with_pod_level: bool = True, presumed: Mapping[str, int] | None = None
) -> Amounts:
    """Return the pod's request per resource, in nano-units."""
    sums = _containers(pod, with_status, presumed or {})
    if with_pod_level and pod_level(pod):
        sums.update(_of_pod_itself(pod, with_status))
    return _plus(sums, read(pod.spec.overhead))


def read(quantities: Mapping[str, str]) -> Amounts:
    return {name: nanos(text) for name, text in quantities.items()}


def _containers(pod: Pod, with_status: bool, presumed: Mapping[str, int]) -> Amounts:
    statuses = _statuses(pod) if with_status else {}
    infeasible = bool(statuses) and _resize_infeasible(pod)

    def needs(container: Container, may_resize: bool) -> Amounts:
        asked = read(container.resources.requests)
        status = statuses.get(container.name) if may_resize else None
        if status is not None and status.resources is not None:
            seen = _most(read(status.resources.requests), read(status.allocated_resources))
            asked = seen if infeasible else _most(asked, seen)
        return {**presumed, **asked}

    sums: Amounts = {}
    for container in pod.spec.containers:
        _plus(sums, needs(container, may_resize=True))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.spec.init_containers:
        need = needs(container, may_resize=container.sidecar)
        if container.sidecar:
            _plus(sums, need)
            need = _plus(sidecars, need)
        else:
            need = _plus(need, sidecars)
        starting = _most(starting, need)
    return _most(sums, starting)


def _of_pod_itself(pod: Pod, with_status: bool) -> Amounts:
    asked = {name: amount for name, amount in read(pod.spec.resources.requests).items() if _is_pod_level(name)}
    status = pod.status.resources
    if not with_status or status is None:
        return asked
    seen = _most(read(status.requests), read(pod.status.allocated_resources))
    effective = seen if _resize_infeasible(pod) else _most(read(pod.spec.resources.requests), seen)
    return {name: effective.get(name, 0) for name in asked}


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    every: Iterable[ContainerStatus] = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return {status.name: status for status in every}


def _resize_infeasible(pod: Pod) -> bool:
    pending = pod.condition("PodResizePending")
    return pending is not None and pending.reason == "Infeasible"


def _plus(sums: Amounts, more: Mapping[str, int]) -> Amounts:
    """Add to `sums` and return it."""
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount
    return sums


def _most(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """Return the larger amount of each resource."""
    most = dict(left)
    for name, amount in right.items():
        most[name] = max(amount, most.get(name, amount))
    return most

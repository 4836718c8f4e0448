"""A lower request: by as much as the node with the smallest deficit lacks.

The scheduler counts the larger of what runs together and what the init containers need, plus overhead; pod-level
requests replace it. So a lower total may need lower requests of several containers. The largest is lowered first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stowplan.columns.arrays import Floats
from stowplan.diagnosis import ranking
from stowplan.diagnosis.case import IMPOSSIBLE, Case, Offer, combined
from stowplan.diagnosis.edits import Edit, Scale
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedy import Operation, PatchObject
from stowplan.framework.plugin_calls import call_list
from stowplan.objects import quantity, requests
from stowplan.objects.pod_parts import Container, ResourceRequirements
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import NANO

CODE = "lower-request"
_PAGES = "hugepages-"


def offers(case: Case) -> Iterator[Offer]:
    for enabled in case.profile.needs_free_filters:
        rejected = case.rejects(enabled.name)
        if rejected is None:
            continue
        needed: dict[str, int] = dict(call_list(enabled, enabled.plugin.needs_free, tuple, case.pod))
        free = {name: case.nodes.free[name] for name in needed}
        lacks = {name: free[name] < amount for name, amount in needed.items()}
        count = np.zeros(len(case.nodes), np.int64)
        weight: Floats = np.zeros(len(case.nodes))
        for name, amount in needed.items():
            overhead = requests.rounded(requests.read(case.pod.spec.overhead)).get(name, 0)
            can = lacks[name] & (max(overhead, 0) <= np.maximum(free[name], 0)) & (name != "pods")
            count += np.where(lacks[name], np.where(can, 1, IMPOSSIBLE), 0)
            weight += np.where(lacks[name], (amount - np.maximum(free[name], 0)) / amount, 0)
        possible = (count > 0) & (count < IMPOSSIBLE)
        if possible.any():
            yield Offer(
                enabled.name,
                case.steps(rejected, count, possible),
                lambda at, free=free, lacks=lacks: [  # type: ignore[misc]
                    lowered(case.pod, name, max(int(free[name][at]), 0)) for name in lacks if lacks[name][at]
                ],
                alike=combined(*lacks.values()),
                weight=weight,
            )


def lowered(pod: Pod, resource: str, target: int) -> Edit:
    """Return the edit after which the pod requests at most `target` of a resource, in the unit of decisions."""
    step = step_of(resource)
    parts = list(_lowered_parts(pod, resource, target))
    operations = [operation for _, _, _, found in parts for operation in found]
    words = [f"of {whose} from {old} to {new}" for whose, old, new, _ in parts]
    request = pod.request.get(resource, 0)
    far = request > 2 * target
    return Edit(
        CODE,
        f"lower the {resource} request " + " and ".join(words),
        (PatchObject("Pod", pod.key, tuple(operations)),),
        size=(request - target) / max(request, 1),
        scale=Scale(target, request, step, lambda amount: lowered(pod, resource, amount)),
        ranked_as=rank_of(resource, far=far),
        also=f"it would ask for less than half of the {resource} that it asks for now" if far else "",
    )


def rank_of(resource: str, *, far: bool) -> str:
    """Return the name in the table of ranking. `far`: by more than half."""
    if requests.is_extended(resource):
        return ranking.DEVICES_GONE if far else ranking.OF_DEVICE
    return ranking.BY_HALF if far else ""


def step_of(resource: str) -> int:
    """Return by how much a request can differ: 1m of cpu, 1Ki of memory, a huge page, else one unit."""
    if resource == "memory":
        return 1024
    if resource.startswith(_PAGES):
        try:
            return max(quantity.value(resource.removeprefix(_PAGES)), 1)
        except ValueError:
            return 1
    return 1


def amount_text(resource: str, amount: int) -> str:
    """Return an amount in the unit of decisions as a quantity."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith(_PAGES):
        return quantity.canonical(f"{amount // 1024}Ki") if amount and amount % 1024 == 0 else str(amount)
    return str(amount)


# -- which containers

_Part = tuple[str, str, str, list[Operation]]


def _lowered_parts(pod: Pod, resource: str, target: int) -> Iterator[_Part]:
    """Yield whose request changes, from what to what, with the operations."""
    unit = 10**6 if resource == "cpu" else NANO
    left = target * unit - requests.read(pod.spec.overhead).get(resource, 0)
    if requests.pod_level(pod) and resource in pod.spec.resources.requests and _is_pod_level(resource):
        new = _floor(max(left, 0), resource)
        yield _part("the pod", ("spec", "resources"), pod.spec.resources, resource, new)
        left = new * unit  # no container may ask for more than the pod
    yield from _containers(pod, resource, max(left, 0), unit)


def _is_pod_level(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith(_PAGES)


def _containers(pod: Pod, resource: str, left: int, unit: int) -> Iterator[_Part]:
    """Yield the containers whose requests must be lower so that they need at most `left` nano-units together."""
    spec = pod.spec
    places = [("containers", at, each) for at, each in enumerate(spec.containers)]
    sidecars = [("initContainers", at, each) for at, each in enumerate(spec.init_containers) if each.sidecar]
    wanted = {(field, at): _nanos(each, resource) for field, at, each in (*places, *sidecars)}
    asked = dict(wanted)
    excess = sum(wanted.values()) - left
    for place in sorted(wanted, key=lambda place: -asked[place]):
        if excess > 0 and wanted[place] > 0:
            wanted[place] = _floor(max(wanted[place] - excess, 0), resource) * unit
            excess -= asked[place] - wanted[place]
    for place in wanted:  # what was rounded away may be enough for a container that asks for next to nothing
        if asked[place] - wanted[place] <= -excess:
            excess += asked[place] - wanted[place]
            wanted[place] = asked[place]
    before = 0
    for at, each in enumerate(spec.init_containers):
        if each.sidecar:
            before += wanted["initContainers", at]
        elif _nanos(each, resource) + before > left:
            wanted["initContainers", at] = _floor(max(left - before, 0), resource) * unit
    for (field, at), new in sorted(wanted.items()):
        container = (spec.containers if field == "containers" else spec.init_containers)[at]
        if new < _nanos(container, resource):
            whose = f"container {container.name}" if field == "containers" else f"init container {container.name}"
            yield _part(whose, ("spec", field, at, "resources"), container.resources, resource, new // unit)


def _nanos(container: Container, resource: str) -> int:
    return requests.read(container.resources.requests).get(resource, 0)


def _floor(nanos: int, resource: str) -> int:
    """Return an amount in the unit of decisions, rounded down to whole steps."""
    unit = 10**6 if resource == "cpu" else NANO
    step = step_of(resource)
    return nanos // unit // step * step


def _part(whose: str, path: Sequence[str | int], resources: ResourceRequirements, resource: str, new: int) -> _Part:
    text = amount_text(resource, new)
    found = [Operation("replace", pointer(*path, "requests", resource), text)]
    # What cannot be overcommitted has a limit that equals the request.
    if resource in resources.limits and (requests.is_extended(resource) or resource.startswith(_PAGES)):
        found.append(Operation("replace", pointer(*path, "limits", resource), text))
    return whose, str(resources.requests[resource]), text, found

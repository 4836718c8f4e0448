"""Taints, fit and node affinity written for one node at a time: slow, plain, and from the objects alone.

They share nothing with the array plugins: no compiled selectors, no columns of requests, no interned taints.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import Decimal

from stowplan.columns.nodes.one_node import OneNode
from stowplan.framework.per_node import Refusal, per_node
from stowplan.objects.pod_parts import Container
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import LabelSelectorRequirement, NodeSelectorTerm
from stowplan.objects.taints import Taint, Toleration

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


@per_node
class TaintTwin:
    def fits(self, pod: Pod, node: OneNode) -> Refusal | None:
        for taint in node.taints:
            if taint.effect == "PreferNoSchedule":
                continue
            if not any(_tolerates(toleration, taint) for toleration in pod.spec.tolerations):
                return "node(s) had untolerated taint(s)", False
        return None


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


# -- fit


@per_node
class FitTwin:
    def fits(self, pod: Pod, node: OneNode) -> list[Refusal]:
        offered = {name: _amount(name, text) for name, text in node.node.status.allocatable.items()}
        taken: Counter[str] = Counter()
        for other in node.pods:
            taken.update(_request(other))
        refusals: list[Refusal] = []
        if len(node.pods) + 1 > offered.get("pods", 0):
            refusals.append("Too many pods")
        wanted = _request(pod)
        fixed = ("cpu", "memory", "ephemeral-storage")
        for name in (*fixed, *sorted(wanted.keys() - set(fixed))):
            need, room = wanted.get(name, 0), offered.get(name, 0)
            if need > 0 and need > room - taken[name]:
                refusals.append((f"Insufficient {name}", need <= room))
        return refusals


FACTORS: dict[str, int] = {"k": 1000, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
SUFFIXES = {"": Decimal(1), "m": Decimal("0.001"), **{each: Decimal(factor) for each, factor in FACTORS.items()}}


def _exact(text: str) -> Decimal:
    number, suffix = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)([A-Za-z]*)", text).groups()  # type: ignore[union-attr]
    return Decimal(number) * SUFFIXES[suffix]


def _amount(resource: str, text: str) -> int:
    return math.ceil(_exact(text) * (1000 if resource == "cpu" else 1))


def _request(pod: Pod) -> dict[str, int]:
    """Containers and sidecars together, or what any init container needs at its turn; and overhead."""
    spec = pod.spec
    sidecars = [container for container in spec.init_containers if container.restart_policy == "Always"]
    sums = _sum([*spec.containers, *sidecars])
    for at, container in enumerate(spec.init_containers):
        earlier = [each for each in spec.init_containers[:at] if each.restart_policy == "Always"]
        for name, amount in _sum([*earlier, container]).items():
            sums[name] = max(amount, sums.get(name, amount))
    for name, text in spec.overhead.items():
        sums[name] = sums.get(name, Decimal(0)) + _exact(text)
    return {name: math.ceil(amount * (1000 if name == "cpu" else 1)) for name, amount in sums.items()}


def _sum(containers: list[Container]) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for container in containers:
        for name, text in container.resources.requests.items():
            sums[name] = sums.get(name, Decimal(0)) + _exact(text)
    return sums


# -- node affinity


@per_node
class AffinityTwin:
    def fits(self, pod: Pod, node: OneNode) -> Refusal | None:
        refusal = "node(s) didn't match Pod's node affinity/selector", False
        if any(node.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
            return refusal
        required = pod.spec.affinity.node_affinity.required
        if required is not None and not any(_meets(term, node) for term in required.node_selector_terms):
            return refusal
        return None


def _meets(term: NodeSelectorTerm, node: OneNode) -> bool:
    """All conditions of a term; an empty term, and one with a condition that makes no sense, is met by no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    if not all(map(_is_sensible, term.match_expressions)) or not all(map(_is_sensible_field, term.match_fields)):
        return False
    return all(_is_met(each, node.labels.get(each.key)) for each in term.match_expressions) and all(
        _is_met(each, node.name if each.key == "metadata.name" else "") for each in term.match_fields
    )


def _is_sensible(condition: LabelSelectorRequirement) -> bool:
    values = condition.values
    if " " in condition.key or not all(LABEL_VALUE.fullmatch(value) for value in values):
        return False
    match condition.operator:
        case "In" | "NotIn":
            return len(values) > 0
        case "Exists" | "DoesNotExist":
            return len(values) == 0
        case "Gt" | "Lt":
            return len(values) == 1 and re.fullmatch("-?[0-9]+", values[0]) is not None
    return False


def _is_sensible_field(condition: LabelSelectorRequirement) -> bool:
    return condition.operator in ("In", "NotIn") and len(condition.values) == 1


def _is_met(condition: LabelSelectorRequirement, found: str | None) -> bool:
    match condition.operator:
        case "In":
            return found in condition.values
        case "NotIn":
            return found not in condition.values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
    if found is None or not re.fullmatch("-?[0-9]+", found):
        return False
    number, bound = int(found), int(condition.values[0])
    return number > bound if condition.operator == "Gt" else number < bound

"""Taints: a toleration for the pod, the taint off the node, or the node uncordoned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.diagnosis.case import Case, Offer
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedy import Operation
from stowplan.objects.taints import HARD_EFFECTS, Taint, Toleration, tolerated
from stowplan.plugins.nodes.default.node_unschedulable import CORDONED, NodeUnschedulable
from stowplan.plugins.nodes.default.taint_toleration import TaintToleration

TOLERATE, UNTAINT, UNCORDON, TOLERATE_CORDON = "tolerate", "remove-taint", "uncordon", "tolerate-cordon"
_KEPT_BY_CONTROLLERS = "node.kubernetes.io/"  # taints that come back as long as the node is like this
# Taints that say how a node is: the pod would not run there, whatever it tolerates.
NOT_READY = frozenset(_KEPT_BY_CONTROLLERS + each for each in ("not-ready", "unreachable", "network-unavailable"))
PRESSURES = {_KEPT_BY_CONTROLLERS + f"{each}-pressure": each for each in ("memory", "disk", "pid")}


def offers(case: Case) -> Iterator[Offer]:
    yield from _cordon_offers(case)
    for enabled in case.profile.filters:
        rejected = case.rejects(enabled.name)
        if rejected is None or not isinstance(enabled.plugin, TaintToleration):
            continue
        compares = enabled.plugin.feature_gates.taint_toleration_comparison_operators
        cordons = _cordon_is_a_cause(case)

        def untolerated(taints: Sequence[Taint], cordoned: bool, compares: bool = compares) -> list[Taint]:
            """Return the taints that reject the pod; what uncordoning removes is not among them."""
            return [
                taint
                for taint in taints
                if taint.effect in HARD_EFFECTS
                and not tolerated(taint, case.pod.tolerations, compares=compares)
                and not (cordoned and _is_cordon(taint))
            ]

        taints, cordoned = case.nodes.taints, cordons
        keys = np.where(
            cordoned,
            taints.number(lambda found: len({taint.key for taint in untolerated(found, True)})),
            taints.number(lambda found: len({taint.key for taint in untolerated(found, False)})),
        )
        seen: dict[tuple[Taint, ...], int] = {}
        alike = taints.number(lambda found, seen=seen: seen.setdefault(tuple(untolerated(found, False)), len(seen)))  # type: ignore[misc]

        def tolerations(at: int, cordoned: Bools = cordoned) -> list[Edit]:
            found = untolerated(case.nodes[at].taints, bool(cordoned[at]))
            return [
                _toleration(case, [t for t in found if t.key == key]) for key in dict.fromkeys(t.key for t in found)
            ]

        ailing = taints.where(lambda found: any(map(says_how_a_node_is, untolerated(found, False))))
        yield Offer(enabled.name, case.steps(rejected, keys, ~ailing), tolerations, alike=alike)

        number = np.where(
            cordoned,
            taints.number(lambda found: len(untolerated(found, True))),
            taints.number(lambda found: len(untolerated(found, False))),
        )
        lasting = np.where(
            cordoned,
            taints.where(lambda found: any(map(_is_kept, untolerated(found, True)))),
            taints.where(lambda found: any(map(_is_kept, untolerated(found, False)))),
        )

        def taints_off(at: int, cordoned: Bools = cordoned) -> list[Edit]:
            node = case.nodes[at]
            found = untolerated(node.taints, bool(cordoned[at]))
            return [
                case.node_edit(
                    UNTAINT,
                    f"remove the taint {shown(taint)} from node {node.name}",
                    node.name,
                    Operation("remove", pointer("spec", "taints", place)),
                )
                for place, taint in enumerate(node.taints)
                if taint in found
            ]

        yield Offer(enabled.name, case.steps(rejected, number, ~lasting), taints_off, own=False, alike=alike)


def _cordon_offers(case: Case) -> Iterator[Offer]:
    for enabled in case.profile.filters:
        rejected = case.rejects(enabled.name)
        if rejected is None or not isinstance(enabled.plugin, NodeUnschedulable):
            continue

        def uncordon(at: int) -> list[Edit]:
            node = case.nodes[at]
            places = [place for place, taint in enumerate(node.taints) if _is_cordon(taint)]
            operations = [Operation("remove", pointer("spec", "taints", place)) for place in places]
            text = f"uncordon node {node.name}"
            return [
                case.node_edit(
                    UNCORDON, text, node.name, Operation("remove", pointer("spec", "unschedulable")), *operations
                )
            ]

        yield Offer(enabled.name, case.steps(rejected, 1), uncordon, own=False)
        tolerating = Toleration(CORDONED.key, "Exists", "", CORDONED.effect)
        text = "tolerate that a node is cordoned"
        edit = case.edit(TOLERATE_CORDON, text, Operation("add", "/spec/tolerations/-", document_of(tolerating)))
        yield Offer(enabled.name, case.steps(rejected, 1), lambda _, edit=edit: [edit])  # type: ignore[misc]


def _cordon_is_a_cause(case: Case) -> Bools:
    """Return the nodes that are rejected because they are cordoned: their taint goes when they are uncordoned."""
    cordoned = np.zeros(len(case.nodes), np.bool_)
    for enabled in case.profile.filters:
        if isinstance(enabled.plugin, NodeUnschedulable):
            rejected = case.rejects(enabled.name)
            cordoned |= cordoned if rejected is None else rejected
    return cordoned


def says_how_a_node_is(taint: Taint) -> bool:
    """True for a taint that a controller sets while a node is not ready, or short of something."""
    return taint.key in NOT_READY or taint.key in PRESSURES


def _is_kept(taint: Taint) -> bool:
    return taint.key.startswith(_KEPT_BY_CONTROLLERS)


def _is_cordon(taint: Taint) -> bool:
    return taint.key == CORDONED.key and taint.effect == CORDONED.effect


def _toleration(case: Case, taints: Sequence[Taint]) -> Edit:
    """Return the narrowest toleration of taints with one key."""
    first = taints[0]
    one_value = all(taint.value == first.value for taint in taints)
    effect = first.effect if all(taint.effect == first.effect for taint in taints) else ""
    found = Toleration(first.key, "Equal" if one_value else "Exists", first.value if one_value else "", effect)
    if not first.key:
        found = Toleration("", "Exists", "", effect)
    names = " and ".join(map(shown, taints))
    return case.edit(TOLERATE, f"tolerate {names}", Operation("add", "/spec/tolerations/-", document_of(found)))


def shown(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def document_of(toleration: Toleration) -> dict[str, str]:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    return {name: text for name, text in fields.items() if text}

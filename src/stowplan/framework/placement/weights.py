"""Which prioritizers count for a placement, and how much: the weights of the policy, and those that the placement sets.

In mode Additive the policy's defaults count, with the placement's weights where it names them. In mode Exact only those
count that the placement names, and those that always do.
"""

from __future__ import annotations

from stowplan.framework.placement.choice import MISCONFIGURED, ClusterPluginStatus
from stowplan.framework.placement.interfaces import Misconfigured, Prioritizer
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.placements import ADD_ON, BUILT_IN, Placement, ScoreCoordinate

CONFIGURATIONS = "spec.prioritizerPolicy.configurations"
WeightedPrioritizers = list[tuple[EnabledPlugin[Prioritizer], int]]


def weigh(placement: Placement, policy: ClusterPolicy, *, ocm: bool) -> WeightedPrioritizers | ClusterPluginStatus:
    """Return the prioritizers that count, with their weights.

    `ocm`: of two built-in prioritizers of one name the last counts, and an add-on score may be listed twice. Otherwise
    each may be listed once.
    """
    weights = _weights(placement, policy) if ocm else _repeated(placement, policy) or _weights(placement, policy)
    if isinstance(weights, ClusterPluginStatus):
        return weights
    found: WeightedPrioritizers = []
    for path, coordinate, weight in weights:
        if weight == 0 or (coordinate.built_in == "Spread" and policy.spread is not None and not ocm):
            continue
        plugin = _prioritizer(path, coordinate, weight, policy)
        if isinstance(plugin, ClusterPluginStatus):
            return plugin
        found.append((plugin, weight))
    return found


def _repeated(placement: Placement, policy: ClusterPolicy) -> ClusterPluginStatus | None:
    first: dict[object, int] = {}
    for index, config in enumerate(placement.spec.prioritizer_policy.configurations):
        coordinate = config.coordinate
        if coordinate is None:
            continue
        named = policy.named(coordinate.built_in) if coordinate.add_on is None else coordinate.add_on
        if first.setdefault((coordinate.type, named), index) != index:
            problem = f"the same as configurations[{first[coordinate.type, named]}]"
            remedy = "list it once, with one weight"
            return ClusterPluginStatus(MISCONFIGURED, "", problem, f"{CONFIGURATIONS}[{index}].scoreCoordinate", remedy)
    return None


def _weights(
    placement: Placement, policy: ClusterPolicy
) -> list[tuple[str, ScoreCoordinate, int]] | ClusterPluginStatus:
    given = placement.spec.prioritizer_policy
    if given.mode not in ("", "Additive", "Exact"):
        problem = f"incorrect prioritizer policy mode: {given.mode}"
        return ClusterPluginStatus(MISCONFIGURED, "", problem, "spec.prioritizerPolicy.mode", "use Additive or Exact")
    defaults = policy.always if given.mode == "Exact" else policy.defaults | policy.always
    named: dict[tuple[object, ...], tuple[str, ScoreCoordinate, int]] = {}
    for name, weight in defaults.items():
        named[BUILT_IN, name] = "", ScoreCoordinate(BUILT_IN, name), weight
    for index, config in enumerate(given.configurations):
        coordinate, path = config.coordinate, f"{CONFIGURATIONS}[{index}].scoreCoordinate"
        if coordinate is None:
            return ClusterPluginStatus(
                MISCONFIGURED, "", "scoreCoordinate field is required", path, "name a prioritizer"
            )
        unique = () if coordinate.add_on is None else (index,)  # add-on scores never replace each other
        named[coordinate.type, policy.named(coordinate.built_in), *unique] = path, coordinate, config.weight
    return list(named.values())


def _prioritizer(
    path: str, coordinate: ScoreCoordinate, weight: int, policy: ClusterPolicy
) -> EnabledPlugin[Prioritizer] | ClusterPluginStatus:
    if coordinate.type == BUILT_IN:
        plugin = policy.prioritizers.get(policy.named(coordinate.built_in))
        if plugin is not None:
            return plugin
        problem = f"incorrect builtin prioritizer: {coordinate.built_in}"
        return ClusterPluginStatus(MISCONFIGURED, "", problem, path, f"use one of {', '.join(policy.prioritizers)}")
    if coordinate.add_on is None:
        return ClusterPluginStatus(
            MISCONFIGURED, "", "addOn should not be empty", path, "set resourceName and scoreName"
        )
    made = policy.add_on(coordinate, weight)
    if isinstance(made, Misconfigured):
        return ClusterPluginStatus(MISCONFIGURED, ADD_ON, made.message, path, made.remedy)
    return made


def spread_weight(placement: Placement, policy: ClusterPolicy) -> int:
    """Return the weight of spreading beside the prioritizers."""
    named = (
        each.weight
        for each in placement.spec.prioritizer_policy.configurations
        if each.coordinate is not None and each.coordinate.built_in == "Spread"
    )
    return next(named, policy.spread_weight)

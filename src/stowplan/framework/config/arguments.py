"""The arguments of plugins: those of kube-scheduler's own plugins are checked and completed, all others pass through.

`arguments(name, args, path)` returns a plain mapping in the spelling of the file, with defaults, durations in seconds,
and without unset options. Other plugins check their arguments in their constructors. Feature gates have their defaults
of 1.36 (StorageCapacityScoring is off, those of DRA are on).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from stowplan.framework.config import document
from stowplan.framework.config.argument_types import (
    Args,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeRequirementArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    NodeTermArgs,
    PodTopologySpreadArgs,
    ResourceSpecArgs,
    ScoringStrategyArgs,
    ShapePointArgs,
    SpreadConstraintArgs,
    VolumeBindingArgs,
)
from stowplan.framework.config.document import Seconds, one_of, shown, under
from stowplan.objects.errors import ConfigError

GROUP = "kubescheduler.config.k8s.io"


def arguments(name: str, args: Any, path: str, versions: Collection[str] = ("v1",)) -> dict[str, Any]:
    """Return the arguments that the plugin `name` is made with; `args` is the value in the file, or None."""
    if args is not None and not isinstance(args, Mapping):
        raise ConfigError(f"found {shown(args)}, expected a mapping", path=path)
    for key in args or {}:
        if not isinstance(key, str):
            raise ConfigError(f"found the argument {shown(key)}, expected a text", path=path, remedy="put it in quotes")
    if name not in _BUILT_IN:
        return dict(args or {})  # the registry leaves out apiVersion and kind, unless the plugin takes them
    kind, rule = _BUILT_IN[name]
    decoded = document.decode(args or {}, kind, path)
    _identity(decoded, f"{name}Args", path, versions)
    rule(decoded, path)
    plain: dict[str, Any] = _set_only(msgspec.to_builtins(decoded, enc_hook=float))
    return {key: value for key, value in plain.items() if key not in ("apiVersion", "kind")}


def is_known(name: str) -> bool:
    """True for a plugin of kube-scheduler's own with arguments: `arguments` completes them."""
    return name in _BUILT_IN


def as_in_file(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return completed arguments as a file has them: durations are texts such as "10s"."""
    if name not in _BUILT_IN:
        return dict(args)
    durations = {each.encode_name for each in msgspec.structs.fields(_BUILT_IN[name][0]) if each.type is Seconds}
    return {key: f"{value:g}s" if key in durations else value for key, value in args.items()}


def _identity(args: Args, kind: str, path: str, versions: Collection[str]) -> None:
    if args.kind not in ("", kind):
        raise ConfigError(f"found {shown(args.kind)}, expected {shown(kind)}", path=under(path, "kind"))
    right = [f"{GROUP}/{version}" for version in versions]
    if args.api_version and args.api_version not in right:
        problem = f"found {shown(args.api_version)}, expected {shown(right[0])}"
        raise ConfigError(problem, path=under(path, "apiVersion"))


def _set_only(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _set_only(item) for key, item in value.items() if item is not None}
    return [_set_only(item) for item in value] if isinstance(value, list) else value


# --- rules for several fields ----------------------------------------------------------------------------------------


def _preemption(args: DefaultPreemptionArgs, path: str) -> None:
    if args.min_candidate_nodes_percentage == 0 and args.min_candidate_nodes_absolute == 0:
        where = under(path, "minCandidateNodesPercentage")
        raise ConfigError("found 0, and minCandidateNodesAbsolute is 0 too", path=where, remedy="raise one of the two")


def _node_affinity(args: NodeAffinityArgs, path: str) -> None:
    if args.added_affinity is None:
        return
    path = under(path, "addedAffinity")
    if args.added_affinity.required:
        at = under(path, "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
        for i, term in enumerate(args.added_affinity.required.node_selector_terms):
            _term(term, f"{at}[{i}]")
    for i, preferred in enumerate(args.added_affinity.preferred or []):
        if preferred.weight:  # kube-scheduler does not check a preference with weight 0
            _term(preferred.preference, under(path, f"preferredDuringSchedulingIgnoredDuringExecution[{i}].preference"))


class _Arity(NamedTuple):
    fits: Callable[[int], bool]
    words: str


_SOME = _Arity(lambda count: count > 0, "at least one value")
_ONE = _Arity(lambda count: count == 1, "exactly one value")
_NONE = _Arity(lambda count: count == 0, "no values")
_EXPRESSIONS = {"In": _SOME, "NotIn": _SOME, "Exists": _NONE, "DoesNotExist": _NONE, "Gt": _ONE, "Lt": _ONE}
_FIELDS = {"In": _ONE, "NotIn": _ONE}


def _term(term: NodeTermArgs, path: str) -> None:
    for i, expression in enumerate(term.match_expressions):
        at = under(path, f"matchExpressions[{i}]")
        _requirement(expression, _EXPRESSIONS, at)
        qualified_name(expression.key, under(at, "key"))
        if expression.operator in ("Gt", "Lt") and not re.fullmatch(r"[-+]?\d+", expression.values[0]):
            found = shown(expression.values[0])
            raise ConfigError(f"found {found}, expected a whole number in quotes", path=under(at, "values[0]"))
    for i, field in enumerate(term.match_fields):
        _requirement(field, _FIELDS, under(path, f"matchFields[{i}]"))


def _requirement(requirement: NodeRequirementArgs, operators: Mapping[str, _Arity], path: str) -> None:
    one_of(requirement.operator, operators, under(path, "operator"))
    arity = operators[requirement.operator]
    if not arity.fits(len(requirement.values)):
        problem = f"found {len(requirement.values)} values, but {requirement.operator} takes {arity.words}"
        raise ConfigError(problem, path=under(path, "values"))


def _fit(args: NodeResourcesFitArgs, path: str) -> None:
    for i, name in enumerate(args.ignored_resources):
        qualified_name(name, under(path, f"ignoredResources[{i}]"))
    for i, group in enumerate(args.ignored_resource_groups):
        where = under(path, f"ignoredResourceGroups[{i}]")
        if "/" in group:
            raise ConfigError(f"found {shown(group)}, expected the part before the slash", path=where)
        qualified_name(group, where)
    _strategy(args.scoring_strategy, under(path, "scoringStrategy"))


def _strategy(strategy: ScoringStrategyArgs, path: str) -> None:
    one_of(strategy.type, ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"), under(path, "type"))
    strategy.resources = _weighed(strategy.resources)
    for i, resource in enumerate(strategy.resources):
        if not 1 <= resource.weight <= 100:
            where = under(path, f"resources[{i}].weight")
            raise ConfigError(f"found {resource.weight}, expected an integer from 1 to 100", path=where)
    ratio, path = strategy.requested_to_capacity_ratio, under(path, "requestedToCapacityRatio")
    if strategy.type != "RequestedToCapacityRatio" and ratio is not None:
        raise ConfigError(f"not allowed when type is {strategy.type}", path=path)
    if strategy.type == "RequestedToCapacityRatio":
        _shape(ratio.shape if ratio else [], under(path, "shape"))


def _shape(shape: list[ShapePointArgs], path: str) -> None:
    if not shape:
        raise ConfigError("missing or empty", path=path, remedy="give it a point such as {utilization: 0, score: 10}")
    for i in range(1, len(shape)):
        before, here = shape[i - 1].utilization, shape[i].utilization
        if before >= here:
            raise ConfigError(f"found {here}, expected more than {before}", path=f"{path}[{i}].utilization")


def _weighed(resources: list[ResourceSpecArgs]) -> list[ResourceSpecArgs]:
    """Return the resources with their weights: cpu and memory if there are none; a weight of 0 becomes 1."""
    if not resources:
        return [ResourceSpecArgs(name="cpu", weight=1), ResourceSpecArgs(name="memory", weight=1)]
    return [ResourceSpecArgs(name=resource.name, weight=resource.weight or 1) for resource in resources]


def _balanced(args: NodeResourcesBalancedAllocationArgs, path: str) -> None:
    args.resources = _weighed(args.resources)
    names: set[str] = set()
    for i, resource in enumerate(args.resources):
        where = under(path, f"resources[{i}]")
        if resource.name in names:
            raise ConfigError(f"{shown(resource.name)} appears twice", path=under(where, "name"))
        if resource.weight != 1:
            raise ConfigError(f"found {resource.weight}, expected 1", path=under(where, "weight"))
        names.add(resource.name)


def _spread(args: PodTopologySpreadArgs, path: str) -> None:
    args.defaulting_type = args.defaulting_type or "System"
    where = under(path, "defaultingType")
    one_of(args.defaulting_type, ("System", "List"), where)
    if args.defaulting_type == "System" and args.default_constraints:
        remedy = "write defaultingType: List, or remove defaultConstraints"
        raise ConfigError(
            "System brings its own constraints, but defaultConstraints is not empty", path=where, remedy=remedy
        )
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(args.default_constraints):
        _constraint(constraint, seen, under(path, f"defaultConstraints[{i}]"))


def _constraint(constraint: SpreadConstraintArgs, seen: set[tuple[str, str]], path: str) -> None:
    if constraint.max_skew <= 0:
        raise ConfigError(f"found {constraint.max_skew}, expected an integer >= 1", path=under(path, "maxSkew"))
    qualified_name(constraint.topology_key, under(path, "topologyKey"))
    one_of(constraint.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway"), under(path, "whenUnsatisfiable"))
    if constraint.label_selector is not None:
        raise ConfigError("not allowed: each pod brings its own", path=under(path, "labelSelector"), remedy="remove it")
    pair = (constraint.topology_key, constraint.when_unsatisfiable)
    if pair in seen:
        raise ConfigError(f"{pair[0]} with {pair[1]} appears twice", path=path)
    seen.add(pair)


def _volumes(args: VolumeBindingArgs, path: str) -> None:
    if args.shape is not None:
        remedy = "remove it: it needs the feature gate StorageCapacityScoring"
        raise ConfigError("not allowed", path=under(path, "shape"), remedy=remedy)


def _dynamic(args: DynamicResourcesArgs, path: str) -> None:
    if args.filter_timeout < 0:
        raise ConfigError(f"found {args.filter_timeout:g}s, expected 0s or more", path=under(path, "filterTimeout"))
    if args.binding_timeout < 1:
        raise ConfigError(f"found {args.binding_timeout:g}s, expected 1s or more", path=under(path, "bindingTimeout"))


_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")
_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def qualified_name(name: str, path: str) -> None:
    """Raise an error if this cannot be the name of a label or a resource."""
    prefix, slash, local = name.rpartition("/")
    if not _NAME.fullmatch(local) or (slash and not _PREFIX.fullmatch(prefix)):
        raise ConfigError(f"found {shown(name)}, expected a name such as cpu or example.com/gpu", path=path)


def _nothing_more(args: Args, path: str) -> None: ...


_BUILT_IN: dict[str, tuple[type[Args], Callable[[Any, str], None]]] = {
    "DefaultPreemption": (DefaultPreemptionArgs, _preemption),
    "DynamicResources": (DynamicResourcesArgs, _dynamic),
    "InterPodAffinity": (InterPodAffinityArgs, _nothing_more),
    "NodeAffinity": (NodeAffinityArgs, _node_affinity),
    "NodeResourcesBalancedAllocation": (NodeResourcesBalancedAllocationArgs, _balanced),
    "NodeResourcesFit": (NodeResourcesFitArgs, _fit),
    "PodTopologySpread": (PodTopologySpreadArgs, _spread),
    "VolumeBinding": (VolumeBindingArgs, _volumes),
}

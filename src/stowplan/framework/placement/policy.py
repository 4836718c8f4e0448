"""The plugins that decide placements: filters in order, prioritizers by the name that placements use, and weights.

A policy is made from a PlacementConfiguration (`build`); without one it is Open Cluster Management's, with our
additions. A placement may name any prioritizer that comes with Stowplan, and each one that the configuration enables:
by its name there, or by its class (`Cheapest` for `cost.py:Cheapest`) if that is no other's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.framework.config.placement_configuration import PlacementConfiguration
from stowplan.framework.config.plugin_sets import Implements
from stowplan.framework.placement.interfaces import ClusterFilter, Misconfigured, Prioritizer, Selecting
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.registry import Registry
from stowplan.objects.placements import BUILT_IN, Placement, ScoreCoordinate


class AddOns(Protocol):
    def __call__(self, coordinate: ScoreCoordinate, weight: int) -> EnabledPlugin[Prioritizer] | Misconfigured:
        """Return the prioritizer of an add-on score."""


@dataclass(frozen=True, eq=False)
class ClusterPolicy:
    filters: tuple[EnabledPlugin[ClusterFilter], ...]
    prioritizers: dict[str, EnabledPlugin[Prioritizer]]  # those that a placement may name
    defaults: dict[str, int]  # weights, in mode Additive
    always: dict[str, int]  # weights, in mode Exact as well
    add_on: AddOns
    spread: Selecting | None = None
    spread_weight: int = 0
    aliases: dict[str, str] = field(default_factory=dict)
    third_party: frozenset[str] = frozenset()  # plugins of others: their scores are checked, and they have no hooks

    def named(self, name: str) -> str:
        """Return the name of the prioritizer that a placement names; the given one if there is none."""
        return name if name in self.prioritizers else self.aliases.get(name, name)

    def hook(self, enabled: EnabledPlugin[object], name: str) -> Any:
        """Return a method that only plugins that come with Stowplan have; None if this one has none.

        A plugin of somebody else may use the same name for something of its own.
        """
        return None if enabled.name in self.third_party else getattr(enabled.plugin, name, None)

    # -- facts about the plugins, so that a decision need not look for them

    @cached_property
    def plugins(self) -> tuple[EnabledPlugin[Any], ...]:
        """Every filter and prioritizer, each once."""
        every = (*self.filters, *self.prioritizers.values())
        return tuple({enabled.name: enabled for enabled in every}.values())

    @cached_property
    def tracked(self) -> bool:
        """True if a plugin does not declare what it reads: then the views note it."""
        return any(self.hook(enabled, "depends_on") is None for enabled in self.plugins)

    @cached_property
    def timed(self) -> tuple[EnabledPlugin[Any], ...]:
        """The plugins whose answers time alone may change."""
        return tuple(enabled for enabled in self.plugins if hasattr(enabled.plugin, "changes_at"))

    @cached_property
    def lapsing(self) -> tuple[EnabledPlugin[Any], ...]:
        """The filters that keep clusters for a while."""
        return tuple(enabled for enabled in self.filters if self.hook(enabled, "lapses") is not None)

    # -- what a decision depends on

    def reads(self, placement: Placement) -> frozenset[Hashable]:
        """Return what plugins declare to read of clusters for a placement, and what its decision groups read.

        These are labels, claims, resources, the whole object, ("score", resource, score), or ("scores", resource) for
        all scores of an AddOnPlacementScore; "" is any resource.
        """
        found = set[Hashable]()
        for config in placement.spec.prioritizer_policy.configurations:
            coordinate = config.coordinate
            if coordinate is not None and coordinate.add_on is not None and config.weight:
                found.add(("score", coordinate.add_on.resource_name, coordinate.add_on.score_name))
        for enabled in self._plugins_of(placement):
            depends_on = self.hook(enabled, "depends_on")
            if depends_on is not None:
                found.update(depends_on(placement))
        if self.spread is not None:
            found.update(self.spread.depends_on(placement))
        return frozenset(found.union(_read_by_groups(placement)))

    def _plugins_of(self, placement: Placement) -> list[EnabledPlugin[Any]]:
        """Return the filters, and the prioritizers that may count for a placement."""
        coordinates = (config.coordinate for config in placement.spec.prioritizer_policy.configurations)
        named = {self.named(each.built_in) for each in coordinates if each is not None and each.type == BUILT_IN}
        names = named | self.defaults.keys() | self.always.keys()
        return [*self.filters, *(enabled for name, enabled in self.prioritizers.items() if name in names)]


def _read_by_groups(placement: Placement) -> Iterator[str]:
    for each in placement.spec.decision_strategy.group_strategy.decision_groups:
        selector = each.group_cluster_selector
        if selector.label_selector.match_labels or selector.label_selector.match_expressions:
            yield LABELS
        if selector.claim_selector.match_expressions:
            yield CLAIMS


def points_in(registry: Registry, *, ocm: bool) -> Implements:
    """Return a function that tells the points of a plugin; `ocm`: without our additions to Open Cluster Management."""

    def implements(name: str) -> frozenset[str] | None:
        points, plugin = registry.implements(name), registry.find(name)
        if points is None or not ocm or name not in registry.built_in:
            return points
        return points.difference(getattr(plugin, "additions", ()))

    return implements


def build(configuration: PlacementConfiguration, registry: Registry, add_on: AddOns, *, ocm: bool) -> ClusterPolicy:
    """Make the plugins of a configuration."""
    points = configuration.points
    enabled = [each.name for listed in points.values() for each in listed]
    implements = points_in(registry, ocm=ocm)
    nameable = [name for name in registry.built_in if "score" in (implements(name) or ())]
    names = dict.fromkeys((*nameable, *enabled))
    made = {name: registry.make(name, configuration.plugin_args.get(name, {})) for name in names}
    weights = {each.name: each.weight for each in points["score"]}
    scoring = {name: EnabledPlugin(name, made[name]) for name in (*nameable, *weights) if _scores(made[name])}
    own = [name for name in weights if name in registry.built_in]
    spread = next((name for name in own if hasattr(made[name], "select")), None)
    always = {name: weights[name] for name in own if getattr(made[name], "counts_always", False)}
    return ClusterPolicy(
        filters=tuple(EnabledPlugin(each.name, made[each.name]) for each in points["filter"]),
        prioritizers=scoring,
        defaults={name: weight for name, weight in weights.items() if name in scoring and name not in always},
        always=always,
        add_on=add_on,
        spread=None if spread is None else made[spread],
        spread_weight=0 if spread is None else weights[spread],
        aliases=dict(_aliases(scoring)),
        third_party=frozenset(made.keys() - set(registry.built_in)),
    )


def _scores(plugin: object) -> bool:
    return hasattr(plugin, "score")


def _aliases(scoring: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the class of each plugin that is named by its path, if no other one has that name."""
    counts = Counter(name.rpartition(":")[2] for name in scoring)
    for name in scoring:
        short = name.rpartition(":")[2]
        if counts[short] == 1 and short != name:
            yield short, name

"""A profile: which plugins run at which point, in which order, with which weights; ready to be used.

One instance of a plugin serves all its points, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.framework.config.configuration import Configuration, ProfileSpec
from stowplan.framework.interfaces import METHODS
from stowplan.framework.registry import Registry
from stowplan.framework.scoring import MAX_SCORE

ASKED = (
    "preEnqueue",
    "filter",
    "postFilter",
    "permit",
    "bind",
    "postBind",
)  # where a plugin without the method has no say


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin at a point. `weight` means something at score only."""

    name: str
    plugin: Any
    weight: int = 0


@dataclass(frozen=True, eq=False)
class Profile:
    scheduler_name: str
    points: Mapping[str, tuple[EnabledPlugin, ...]]
    percentage_of_nodes_to_score: int | None = None

    def at(self, point: str) -> tuple[EnabledPlugin, ...]:
        return self._asked.get(point, ())

    @cached_property
    def _asked(self) -> Mapping[str, tuple[EnabledPlugin, ...]]:
        """Without plugins that a configuration may list somewhere, and that have nothing to do there."""
        return {
            point: tuple(bound for bound in bounds if point not in ASKED or hasattr(bound.plugin, METHODS[point]))
            for point, bounds in self.points.items()
        }

    @cached_property
    def all(self) -> tuple[EnabledPlugin, ...]:
        """Every plugin that runs anywhere, each once."""
        return tuple({bound.name: bound for bounds in self.points.values() for bound in bounds}.values())

    @cached_property
    def groups(self) -> tuple[EnabledPlugin, ...]:
        """The plugins that put pods into groups."""
        return tuple(bound for bound in self.all if hasattr(bound.plugin, "group_of"))

    @cached_property
    def holding(self) -> tuple[EnabledPlugin, ...]:
        """The plugins that hold room for pods which do not exist yet."""
        return tuple(bound for bound in self.all if hasattr(bound.plugin, "slots_of"))

    @cached_property
    def event_plugins(self) -> tuple[EnabledPlugin, ...]:
        """The plugins that add cluster events."""
        return tuple(bound for bound in self.all if hasattr(bound.plugin, "cluster_events"))

    @cached_property
    def reads(self) -> frozenset[str]:
        """The kinds that its plugins read."""
        return frozenset(("Pod", "Node")).union(*(getattr(bound.plugin, "reads", ()) for bound in self.all))

    @cached_property
    def points_type(self) -> type[np.int32] | type[np.int64]:
        """The narrower type that holds the sum of all weighted scores: half as wide is added up in half the time."""
        most = MAX_SCORE * sum(bound.weight for bound in self.at("score"))
        return np.int32 if most <= np.iinfo(np.int32).max else np.int64

    @cached_property
    def reserving(self) -> tuple[EnabledPlugin, ...]:
        """The reserve plugins that take something, and do not only give back."""
        return tuple(bound for bound in self.at("reserve") if hasattr(bound.plugin, "reserve"))

    @cached_property
    def pre_binding(self) -> tuple[EnabledPlugin, ...]:
        """The pre-bind plugins that want something done, and do not only wait."""
        return tuple(bound for bound in self.at("preBind") if hasattr(bound.plugin, "pre_bind"))

    @cached_property
    def awaiting(self) -> tuple[EnabledPlugin, ...]:
        """The pre-bind plugins that may make a pod wait for what their actions began."""
        return tuple(bound for bound in self.at("preBind") if hasattr(bound.plugin, "pre_bound"))

    @cached_property
    def quick(self) -> frozenset[str]:
        """The plugins whose pre-binding is over in a moment."""
        return frozenset(bound.name for bound in self.all if getattr(bound.plugin, "quick_pre_bind", False))

    @cached_property
    def done_by_skipping(self) -> frozenset[str]:
        """The plugins that have nothing more to do for a pod once their pre-filter says so."""
        return frozenset(bound.name for bound in self.all if getattr(bound.plugin, "skip_is_final", False))

    @cached_property
    def activators(self) -> tuple[EnabledPlugin, ...]:
        """The plugins that name pods to be tried with another one."""
        return tuple(bound for bound in self.all if hasattr(bound.plugin, "siblings"))

    @cached_property
    def avoiding(self) -> tuple[EnabledPlugin, ...]:
        """The plugins that name nodes to be taken only if no other will do."""
        return tuple(bound for bound in self.all if hasattr(bound.plugin, "avoid"))

    @cached_property
    def showing(self) -> tuple[EnabledPlugin, ...]:
        """The plugins that say what extenders are to see of a pod."""
        return tuple(bound for bound in self.all if hasattr(bound.plugin, "for_extenders"))

    @cached_property
    def tending(self) -> tuple[EnabledPlugin, ...]:
        """The plugins that keep something in the API in step."""
        return tuple(bound for bound in self.all if hasattr(bound.plugin, "tend"))

    def attach(self, state: ClusterState) -> None:
        """Make a state hold room as the plugins say. Every state that the profile decides on needs this once."""
        for bound in self.all:
            attach_plugin(bound.plugin, state)

    def plugin(self, name: str) -> Any | None:
        """The instance of a plugin that runs anywhere in this profile."""
        return next((bound.plugin for bound in self.all if bound.name == name), None)


def attach_plugin(plugin: Any, state: ClusterState) -> None:
    source = getattr(plugin, "holds_room", None)
    if source is not None:
        state.hold_as(source)


def build(spec: ProfileSpec, registry: Registry, path: str = "profiles[0]") -> Profile:
    """Make the plugins of a profile and put each where it belongs."""
    names = dict.fromkeys(enabled.name for bounds in spec.points.values() for enabled in bounds)
    made = {name: registry.make(name, spec.plugin_args.get(name, {}), path=path) for name in names}
    points = {
        point: tuple(
            EnabledPlugin(enabled.name, made[enabled.name], enabled.weight) for enabled in spec.points.get(point, ())
        )
        for point in METHODS
    }
    return Profile(spec.scheduler_name, points, spec.percentage_of_nodes_to_score)


def build_all(configuration: Configuration, registry: Registry) -> dict[str, Profile]:
    """Every profile by its scheduler name."""
    return {
        spec.scheduler_name: build(_with_percentage(spec, configuration), registry, f"profiles[{index}]")
        for index, spec in enumerate(configuration.profiles)
    }


def _with_percentage(spec: ProfileSpec, configuration: Configuration) -> ProfileSpec:
    """A profile that does not say how many nodes to look at goes by what holds for all."""
    if spec.percentage_of_nodes_to_score is not None:
        return spec
    return msgspec.structs.replace(spec, percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score)

"""A profile: the plugins of one scheduler name, in order, with weights; one typed table per extension point and role.

One instance of a plugin serves all its points, as in kube-scheduler. A configuration may list a plugin at a point where
it has no method (kube-scheduler splits in two what is one method here); the typed tables leave such a plugin out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.framework.binding_annotations import BindingAnnotationsPlugin
from stowplan.framework.config.configuration import Configuration, ProfileSpec
from stowplan.framework.declared_kinds import reads_of, resources_of
from stowplan.framework.extension_points import METHODS
from stowplan.framework.interfaces import (
    AvoidPlugin,
    BindPlugin,
    ClusterEventsPlugin,
    ExtenderLabelsPlugin,
    FilterPlugin,
    GaugesPlugin,
    GroupPlugin,
    KeepsApartPlugin,
    NeedsFreePlugin,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreBoundPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueueSortPlugin,
    ReconcilePlugin,
    RecountPlugin,
    ReservePlugin,
    ScorePlugin,
    SiblingsPlugin,
    SlotPodsPlugin,
    SlotsPlugin,
)
from stowplan.framework.registry import Registry
from stowplan.framework.scoring import MAX_SCORE
from stowplan.framework.undo_pre_bind import UndoPreBindPlugin
from stowplan.objects.meta import Object

PluginT_co = TypeVar("PluginT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class EnabledPlugin(Generic[PluginT_co]):
    """A plugin that a profile enables at a point, under its configured name. Only score plugins have a weight."""

    name: str
    plugin: PluginT_co
    weight: int = 0


@dataclass(frozen=True, eq=False)
class Profile:
    """The plugins of one scheduler name. `points` is what the configuration lists at each extension point."""

    scheduler_name: str
    points: Mapping[str, tuple[EnabledPlugin[Any], ...]]
    percentage_of_nodes_to_score: int | None = None

    # -- extension points, in the order in which a pod meets them

    @cached_property
    def pre_enqueue(self) -> tuple[EnabledPlugin[PreEnqueuePlugin], ...]:
        return self._at("preEnqueue", "pre_enqueue")

    @cached_property
    def queue_sort(self) -> EnabledPlugin[QueueSortPlugin]:
        return self.points["queueSort"][0]

    @cached_property
    def pre_filters(self) -> tuple[EnabledPlugin[PreFilterPlugin], ...]:
        return self._at("preFilter", "pre_filter")

    @cached_property
    def filters(self) -> tuple[EnabledPlugin[FilterPlugin], ...]:
        return self._at("filter", "filter")

    @cached_property
    def post_filters(self) -> tuple[EnabledPlugin[PostFilterPlugin], ...]:
        return self._at("postFilter", "post_filter")

    @cached_property
    def scorers(self) -> tuple[EnabledPlugin[ScorePlugin], ...]:
        return self._at("score", "score")

    @cached_property
    def reservers(self) -> tuple[EnabledPlugin[ReservePlugin], ...]:
        return self._at("reserve", "reserve")

    @cached_property
    def unreservers(self) -> tuple[EnabledPlugin[ReservePlugin], ...]:
        """The reserve plugins with `unreserve`, in the order in which they are called: the last one first."""
        return self._at("reserve", "unreserve")[::-1]

    @cached_property
    def permitters(self) -> tuple[EnabledPlugin[PermitPlugin], ...]:
        return self._at("permit", "permit")

    @cached_property
    def pre_binders(self) -> tuple[EnabledPlugin[PreBindPlugin], ...]:
        return self._at("preBind", "pre_bind")

    @cached_property
    def pre_bind_waiters(self) -> tuple[EnabledPlugin[PreBoundPlugin], ...]:
        """The pre-bind plugins that may make a pod wait for what their actions began."""
        return self._at("preBind", "pre_bound")

    @cached_property
    def pre_bind_undoers(self) -> tuple[EnabledPlugin[UndoPreBindPlugin], ...]:
        """The pre-bind plugins that take back what they wrote, the last one first."""
        return self._at("preBind", "undo_pre_bind")[::-1]

    @cached_property
    def binders(self) -> tuple[EnabledPlugin[BindPlugin], ...]:
        return self._at("bind", "bind")

    @cached_property
    def post_binders(self) -> tuple[EnabledPlugin[PostBindPlugin], ...]:
        return self._at("postBind", "post_bind")

    # -- optional roles: a plugin that is enabled at any point is called

    @cached_property
    def group_plugins(self) -> tuple[EnabledPlugin[GroupPlugin], ...]:
        """The plugins that put pods into groups."""
        return self._having("group_of")

    @cached_property
    def slot_plugins(self) -> tuple[EnabledPlugin[SlotsPlugin], ...]:
        """The plugins that hold room for pods which do not exist yet."""
        return self._having("slots_of")

    @cached_property
    def slot_pod_plugins(self) -> tuple[EnabledPlugin[SlotPodsPlugin], ...]:
        """Those of them that say what the room is for."""
        return self._having("slot_pods")

    @cached_property
    def sibling_plugins(self) -> tuple[EnabledPlugin[SiblingsPlugin], ...]:
        """The plugins that name other pods to attempt along with a pod."""
        return self._having("siblings")

    @cached_property
    def avoid_plugins(self) -> tuple[EnabledPlugin[AvoidPlugin], ...]:
        """The plugins that name nodes to use only if no other node is feasible."""
        return self._having("avoid")

    @cached_property
    def binding_annotators(self) -> tuple[EnabledPlugin[BindingAnnotationsPlugin], ...]:
        """The plugins that write annotations of a pod together with its binding."""
        return self._having("binding_annotations")

    @cached_property
    def extender_label_plugins(self) -> tuple[EnabledPlugin[ExtenderLabelsPlugin], ...]:
        """The plugins that change the labels which HTTP extenders see on a pod."""
        return self._having("for_extenders")

    @cached_property
    def reconcilers(self) -> tuple[EnabledPlugin[ReconcilePlugin], ...]:
        """The plugins that write objects to the API to keep them in step with the cluster."""
        return self._having("reconcile")

    @cached_property
    def gauge_plugins(self) -> tuple[EnabledPlugin[GaugesPlugin], ...]:
        """The plugins with metrics of their own."""
        return self._having("gauges")

    @cached_property
    def recount_plugins(self) -> tuple[EnabledPlugin[RecountPlugin], ...]:
        """The plugins whose counts can be compared with the API's objects."""
        return self._having("recount")

    @cached_property
    def needs_free_filters(self) -> tuple[EnabledPlugin[NeedsFreePlugin], ...]:
        """The filters that can say how much room they want free on a node."""
        return self._at("filter", "needs_free")

    @cached_property
    def keeps_apart_filters(self) -> tuple[EnabledPlugin[KeepsApartPlugin], ...]:
        """The filters that can say which pods they keep apart."""
        return self._at("filter", "keeps_apart")

    # -- facts about the plugins

    @cached_property
    def pre_filter_names(self) -> tuple[str, ...]:
        return tuple(enabled.name for enabled in self.pre_filters)

    @cached_property
    def ignores_volumes(self) -> bool:
        """True if no answer that may be cached by a pod's shape depends on the pod's volumes."""
        filters = (each.plugin for each in self.filters if self.filters_by_row[each.name])
        scorers = (each.plugin for each in self.scorers if getattr(each.plugin, "scores_by_row", False))
        return all(getattr(plugin, "ignores_volumes", False) for plugin in (*filters, *scorers))

    @cached_property
    def pre_filters_ignore_requests(self) -> bool:
        """True if no pre-filter's answer that may be kept by a pod's shape depends on what the pod requests."""
        by_shape = (each.plugin for each in self.pre_filters if getattr(each.plugin, "pre_filters_by_shape", False))
        return all(getattr(plugin, "ignores_requests", False) for plugin in by_shape)

    @cached_property
    def shape_plans(self) -> dict[Hashable, Any]:
        """What the pre-filters answer to pods of a shape; `pre_filtering` fills it."""
        return {}

    @cached_property
    def all(self) -> tuple[EnabledPlugin[Any], ...]:
        """Every plugin that is enabled at any point, each once."""
        return tuple({enabled.name: enabled for plugins in self.points.values() for enabled in plugins}.values())

    @cached_property
    def event_plugins(self) -> tuple[EnabledPlugin[ClusterEventsPlugin], ...]:
        """The plugins that add cluster events."""
        return self._having("cluster_events")

    @cached_property
    def reads(self) -> frozenset[str]:
        """The names of the kinds that the plugins read, those that they bring included."""
        return frozenset(("Pod", "Node")).union(*(reads_of(enabled.plugin) for enabled in self.all))

    @cached_property
    def own_types(self) -> dict[str, type[Object]]:
        """The types of the kinds that the plugins bring, by name."""
        return {each.name: each.object_type for enabled in self.all for each in resources_of(enabled.plugin)}

    @cached_property
    def totals_type(self) -> type[np.int16] | type[np.int32] | type[np.int64]:
        """The narrowest integer type that holds the sum of all weighted scores: adding up fewer bytes is faster."""
        most = MAX_SCORE * sum(enabled.weight for enabled in self.scorers)
        if most <= np.iinfo(np.int16).max:
            return np.int16
        return np.int32 if most <= np.iinfo(np.int32).max else np.int64

    @cached_property
    def scored_without_pre_score(self) -> frozenset[str]:
        """The score plugins whose PreScore, a point of its own in kube-scheduler, is switched off in this profile."""
        pre_scored = {enabled.name for enabled in self.points.get("preScore", ())}
        return frozenset(
            enabled.name
            for enabled in self.scorers
            if "preScore" in getattr(enabled.plugin, "configurable_at", ()) and enabled.name not in pre_scored
        )

    @cached_property
    def filters_by_row(self) -> dict[str, Any]:
        """By filter: whether its answers are kept by row, or the method that says so of a pod."""
        return {each.name: getattr(each.plugin, "filters_by_row", False) for each in self.filters}

    @cached_property
    def row_scorers(self) -> tuple[EnabledPlugin[ScorePlugin], ...]:
        """The score plugins whose answers are kept by row."""
        return tuple(each for each in self.scorers if getattr(each.plugin, "scores_by_row", False))

    @cached_property
    def row_questions(self) -> dict[Any, Any]:
        """How to ask about single rows, by the plugins that are asked; `changed_rows` fills it."""
        return {}

    @cached_property
    def node_scorers(self) -> frozenset[str]:
        """The score plugins that look at node objects alone, and at which nodes are feasible."""
        return frozenset(each.name for each in self.scorers if getattr(each.plugin, "scores_by_node", False))

    @cached_property
    def unsized_scorers(self) -> frozenset[str]:
        """Those of them that do not look at what the pod requests."""
        scorers = (each for each in self.scorers if each.name in self.node_scorers)
        return frozenset(each.name for each in scorers if getattr(each.plugin, "ignores_requests", False))

    @cached_property
    def quick_pre_binders(self) -> frozenset[str]:
        """The plugins whose pre-binding is a single write."""
        return frozenset(enabled.name for enabled in self.all if getattr(enabled.plugin, "quick_pre_bind", False))

    @cached_property
    def skip_is_final(self) -> frozenset[str]:
        """The plugins with nothing left to do for a pod once their pre-filter answers SKIP."""
        return frozenset(enabled.name for enabled in self.all if getattr(enabled.plugin, "skip_is_final", False))

    def attach(self, state: ClusterState) -> None:
        """Make a state hold room as the plugins say. Every state that the profile decides on needs this once."""
        for enabled in self.all:
            attach_plugin(enabled.plugin, state)

    def plugin(self, name: str) -> Any | None:
        """The instance of a plugin that is enabled at any point of this profile."""
        return next((enabled.plugin for enabled in self.all if enabled.name == name), None)

    def _at(self, point: str, method: str) -> tuple[EnabledPlugin[Any], ...]:
        return _having(self.points.get(point, ()), method)

    def _having(self, method: str) -> tuple[EnabledPlugin[Any], ...]:
        return _having(self.all, method)


def _having(plugins: Iterable[EnabledPlugin[Any]], method: str) -> tuple[EnabledPlugin[Any], ...]:
    return tuple(enabled for enabled in plugins if hasattr(enabled.plugin, method))


def attach_plugin(plugin: Any, state: ClusterState) -> None:
    source = getattr(plugin, "holds_room", None)
    if source is not None:
        state.hold_as(source)


def build(spec: ProfileSpec, registry: Registry, path: str = "profiles[0]") -> Profile:
    """Make the plugins of a profile and list each at its points."""
    names = dict.fromkeys(enabled.name for plugins in spec.points.values() for enabled in plugins)
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
    """The profile with the configuration's own percentageOfNodesToScore, where the profile gives none."""
    if spec.percentage_of_nodes_to_score is not None:
        return spec
    return msgspec.structs.replace(spec, percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score)

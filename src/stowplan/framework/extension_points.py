"""The extension points of kube-scheduler and of placements, and the methods that plugins have there.

Plugins for nodes and plugins for clusters both have `filter` and `score`; they differ in what they are asked about, and
so in the parameters of these methods: `(pod, nodes)` or `(placement, clusters)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from stowplan.objects.errors import ConfigError

# Each extension point, in kube-scheduler's spelling, and the method that a plugin has there.
METHODS: dict[str, str] = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "sort_key",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}

INSTEAD = {"queueSort": ("group_key", "cluster_key")}  # methods that a plugin may have there instead

# The methods of plugins that belong to no extension point of kube-scheduler.
ROLES = (
    *("unreserve", "pre_bound", "undo_pre_bind", "group_of", "group_key", "cluster_key", "slots_of", "siblings"),
    *("slot_pods", "avoid", "causes", "pod_causes"),
    *("for_extenders", "needs_free", "filters_by_row", "reconcile", "gauges", "recount", "wakes_on"),
    *("binding_annotations", "fits", "rate", "pre_filters_by_shape", "filter_what_if", "keeps_apart"),
)
CALLED = (*filter(None, METHODS.values()), *ROLES)


@dataclass(frozen=True)
class PluginKind:
    """Plugins for nodes, or for clusters: their extension points, and the group of their entry points."""

    about: str  # what is chosen
    asked: str  # what it is chosen for
    methods: Mapping[str, str]
    entry_points: str

    @property
    def one(self) -> str:
        """One of those that are chosen; also what `--kind` calls it."""
        return self.about.removesuffix("s")

    @property
    def asks(self) -> str:
        """The parameters of filter and score."""
        return f"({self.asked}, {self.about})"

    def points_of(self, plugin: type) -> frozenset[str]:
        """Return the points at which a configuration may list this plugin."""
        has = {
            point
            for point, method in self.methods.items()
            if any(callable(getattr(plugin, each, None)) for each in (method, *INSTEAD.get(point, ())) if each)
        }
        further = getattr(plugin, "configurable_at", ())
        if not isinstance(further, tuple | list) or not self.methods.keys() >= set(further):
            known = ", ".join(self.methods)
            raise ConfigError(f"{plugin.__name__}.configurable_at is {further!r}", remedy=f"a tuple of some of {known}")
        return frozenset(has | set(further))

    def check(self, plugin: type, name: str) -> None:
        """Raise an error if the plugin is of the other kind."""
        found = kind_of(plugin)
        if found is not None and self not in (found, EITHER):
            problem = f"plugin {name} is for {found.about}, and this configuration is for {self.about}"
            raise ConfigError(problem, remedy=f"a plugin for {self.about} has filter{self.asks} or score{self.asks}")


NODES = PluginKind("nodes", "pod", METHODS, "stowplan.plugins")
CLUSTERS = PluginKind("clusters", "placement", {"filter": "filter", "score": "score"}, "stowplan.cluster_plugins")
EITHER = PluginKind("nodes or clusters", "pod or placement", METHODS, "")  # not known before the plugin is loaded
KINDS = {kind.one: kind for kind in (NODES, CLUSTERS)}

TELL = f"name the parameters of filter and score {NODES.asks} or {CLUSTERS.asks}"  # what to do about a kind not known

# What only plugins of one kind have.
_OWN_METHODS = {NODES.one: {*CALLED} - {"filter", "score", "fits", "rate"}, CLUSTERS.one: {"why", "changes_at"}}


def kind_of(plugin: type) -> PluginKind | None:
    """Return what a plugin is for, by the parameters of its methods or the methods it has; None: they do not say."""
    for method in ("fits", "rate", "filter", "score"):
        found = getattr(plugin, method, None)
        names = [name.lstrip("_") for name in inspect.signature(found).parameters][1:3] if callable(found) else []
        for at, name in enumerate(names):
            for kind in KINDS.values():
                if name in ((kind.asked,), (kind.about, kind.one))[at]:
                    return kind
    has = [one for one, own in _OWN_METHODS.items() if any(callable(getattr(plugin, each, None)) for each in own)]
    return KINDS[has[0]] if len(has) == 1 else None


def points_of(plugin: type) -> frozenset[str]:
    """Return the points at which a configuration of nodes may list this plugin."""
    return NODES.points_of(plugin)

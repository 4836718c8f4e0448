"""The extension points of kube-scheduler and of placements, and the methods that plugins have there.

Plugins for nodes and plugins for clusters both have `filter` and `score`; they differ in what they are asked about, and
so in the first parameter of these methods: `pod` or `placement`.
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
    *("unreserve", "pre_bound", "group_of", "group_key", "cluster_key", "slots_of", "siblings", "avoid"),
    *("for_extenders", "needs_free", "filters_by_row", "reconcile", "gauges", "recount", "wakes_on"),
)
CALLED = (*filter(None, METHODS.values()), *ROLES)


@dataclass(frozen=True)
class PluginKind:
    """Plugins for nodes, or for clusters: their extension points, and the group of their entry points."""

    about: str
    asks: str  # the first parameter of filter and score, and the second
    methods: Mapping[str, str]
    entry_points: str

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
        if found not in (None, self):
            assert found is not None
            problem = f"plugin {name} is for {found.about}, and this configuration is for {self.about}"
            raise ConfigError(problem, remedy=f"a plugin for {self.about} has filter{self.asks} or score{self.asks}")


NODES = PluginKind("nodes", "(pod, nodes)", METHODS, "stowplan.plugins")
CLUSTERS = PluginKind(
    "clusters", "(placement, clusters)", {"filter": "filter", "score": "score"}, "stowplan.cluster_plugins"
)


def kind_of(plugin: type) -> PluginKind | None:
    """Return what a plugin is for, by the first parameter of its methods; None: that does not say."""
    for method in ("fits", "rate", "filter", "score"):
        found = getattr(plugin, method, None)
        if callable(found):
            parameters = [*inspect.signature(found).parameters][1:]
            if parameters and parameters[0] in ("pod", "placement"):
                return NODES if parameters[0] == "pod" else CLUSTERS
    return None


def points_of(plugin: type) -> frozenset[str]:
    """Return the points at which a configuration of nodes may list this plugin."""
    return NODES.points_of(plugin)

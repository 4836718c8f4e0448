"""The plugins that a profile runs at each extension point, in order and with weights, from its `plugins` in the file.

1. multiPoint begins with the default plugins. A plugin that the file lists under multiPoint replaces the default of its
   name, or is added at the end. A disabled plugin is removed; "*" removes all defaults.
2. At each point: first the plugins listed there that are in multiPoint, too, in the order of the list; then the other
   plugins of multiPoint that implement the point; then the other listed plugins. `disabled` at a point removes plugins
   of multiPoint, never listed ones.
3. A weight that is missing, or 0, becomes 1: also for a default plugin that is listed again without its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from stowplan.framework.config import removed
from stowplan.framework.config.document import ConfigValue, shown, suggestion
from stowplan.objects.errors import ConfigError

Implements = Callable[[str], Collection[str] | None]

POINTS: tuple[str, ...] = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore",
    "score", "reserve", "permit", "preBind", "bind", "postBind",
)  # fmt: skip
PLACEMENT_POINTS: tuple[str, ...] = ("placementGenerate", "placementScore")
WEIGHTED = ("score", "placementScore")

DEFAULT_PLUGINS: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0), ("PrioritySort", 0), ("NodeUnschedulable", 0), ("NodeName", 0), ("TaintToleration", 3),
    ("NodeAffinity", 2), ("NodePorts", 0), ("NodeResourcesFit", 1), ("VolumeRestrictions", 0), ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0), ("VolumeZone", 0), ("PodTopologySpread", 2), ("InterPodAffinity", 2), ("DynamicResources", 2),
    ("DefaultPreemption", 0), ("NodeResourcesBalancedAllocation", 1), ("ImageLocality", 1), ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
)  # fmt: skip


class Enabled(msgspec.Struct, frozen=True):
    """A plugin at a point; the weight is for score and placementScore, and 0 at all other points."""

    name: str
    weight: int = 0


# --- the file's shape ------------------------------------------------------------------------------------------------


class PluginRef(ConfigValue, frozen=True):
    name: str
    weight: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0  # far below int64, so that no sum of scores can overflow


class PluginSet(ConfigValue, frozen=True):
    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(ConfigValue, frozen=True):
    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def sets(self) -> dict[str, PluginSet]:
        """Return every set under its name in the file."""
        return {field.encode_name: getattr(self, field.name) for field in msgspec.structs.fields(self)}


# --- merging ---------------------------------------------------------------------------------------------------------


class Listed(NamedTuple):
    """An entry of an enabled list, and its place in the file."""

    name: str
    weight: int | None
    path: str


class Ref(Protocol):
    """An entry of a set, whatever weights it may have."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int | None: ...


class RefSet(Protocol):
    """A set of plugins at a point, for nodes or for clusters."""

    @property
    def enabled(self) -> Sequence[Ref]: ...

    @property
    def disabled(self) -> Sequence[Ref]: ...


class PluginCatalogue(NamedTuple):
    """The plugins that exist; `known` are names to suggest."""

    implements: Implements
    known: Collection[str]

    def points(self, plugin: Listed) -> Collection[str]:
        """Return the points that the plugin implements; raise an error if there is no such plugin."""
        if plugin.name in removed.NAMES_IN_1_36:
            remedy = removed.PLUGINS[plugin.name]
            raise ConfigError(f'plugin "{plugin.name}" was removed', path=plugin.path, remedy=remedy)
        try:
            points = self.implements(plugin.name)
        except ConfigError as error:  # a plugin that cannot be loaded from its file
            raise ConfigError(error.problem, path=error.path or plugin.path, remedy=error.remedy) from error
        if points is None and plugin.name in removed.PLUGINS:
            remedy = removed.PLUGINS[plugin.name]
            raise ConfigError(f'plugin "{plugin.name}" was removed', path=plugin.path, remedy=remedy)
        if points is None:
            remedy = suggestion(plugin.name, self.known) or "is it registered with this scheduler?"
            raise ConfigError(f"there is no plugin {shown(plugin.name)}", path=plugin.path, remedy=remedy)
        return points


def expand(
    plugins: Plugins, path: str, catalogue: PluginCatalogue
) -> tuple[dict[str, tuple[Enabled, ...]], frozenset[str]]:
    """Return the plugins of each point, and the names of all plugins that are made, even if no point runs them."""
    merged, names = merge(plugins.sets(), path, catalogue, POINTS + PLACEMENT_POINTS, DEFAULT_PLUGINS)
    points = {point: tuple(_enabled(plugin, point) for plugin in listed) for point, listed in merged.items()}
    _check_counts(points, path)
    return points, names


def merge(
    given: Mapping[str, RefSet],
    path: str,
    catalogue: PluginCatalogue,
    at: Sequence[str],
    defaults: Sequence[tuple[str, int]],
) -> tuple[dict[str, list[Listed]], frozenset[str]]:
    """Merge the sets of a file, by its points and multiPoint, with the default plugins and their weights."""
    sets = dict(given)
    multi = _with_defaults(sets.pop("multiPoint"), f"{path}.multiPoint", defaults)
    listed = {point: _listed(each.enabled, f"{path}.{point}.enabled") for point, each in sets.items()}
    points = {}
    for point in at:
        _check_listed(point, listed[point], catalogue)
        disabled = {plugin.name for plugin in sets[point].disabled}
        usable = [plugin for plugin in multi if point in catalogue.points(plugin) and not disabled & {plugin.name, "*"}]
        points[point] = _in_order(listed[point], usable)
    return points, frozenset(plugin.name for group in (multi, *listed.values()) for plugin in group)


def _listed(plugins: Iterable[Ref], path: str) -> list[Listed]:
    return [Listed(plugin.name, plugin.weight, f"{path}[{i}]") for i, plugin in enumerate(plugins)]


def _with_defaults(given: RefSet, path: str, plugins: Sequence[tuple[str, int]]) -> list[Listed]:
    disabled = {plugin.name for plugin in given.disabled}
    own = _listed(given.enabled, f"{path}.enabled")
    substitutes = {plugin.name: plugin for plugin in own}  # the last of several; the others stay, as duplicates
    defaults = [Listed(name, weight, path) for name, weight in plugins if not disabled & {name, "*"}]
    merged = [substitutes.get(plugin.name, plugin) for plugin in defaults]
    return merged + [plugin for plugin in own if plugin not in merged]


def _in_order(listed: list[Listed], usable: list[Listed]) -> list[Listed]:
    names = {plugin.name for plugin in listed}
    overridden = {plugin.name for plugin in usable} & names
    added = [plugin for plugin in usable if plugin.name not in names]
    _check_once(added)
    first = [plugin for plugin in listed if plugin.name in overridden]
    return first + added + [plugin for plugin in listed if plugin.name not in overridden]


def _enabled(plugin: Listed, point: str) -> Enabled:
    return Enabled(plugin.name, (plugin.weight or 1) if point in WEIGHTED else 0)


# --- what is invalid -------------------------------------------------------------------------------------------------


def _check_listed(point: str, plugins: list[Listed], catalogue: PluginCatalogue) -> None:
    for plugin in plugins:
        if point not in (points := catalogue.points(plugin)):
            remedy = f"it can be listed at {', '.join(sorted(points))}" if points else ""
            raise ConfigError(f'plugin "{plugin.name}" does not implement {point}', path=plugin.path, remedy=remedy)
    _check_once(plugins)


def _check_once(plugins: list[Listed]) -> None:
    first: dict[str, Listed] = {}
    for plugin in plugins:
        if plugin.name in first:
            places = sorted((first[plugin.name].path, plugin.path), key=lambda path: (len(path), path))
            raise ConfigError(f'plugin "{plugin.name}" appears twice', path=places[-1], remedy=f"first at {places[0]}")
        first[plugin.name] = plugin


def _check_counts(points: dict[str, tuple[Enabled, ...]], path: str) -> None:
    sorts = [plugin.name for plugin in points["queueSort"]]
    if len(sorts) != 1:
        found = f"found {len(sorts)} ({', '.join(sorts)})" if sorts else "found none"
        remedy = 'disable the default with {disabled: [{name: "*"}]}' if sorts else "enable PrioritySort"
        raise ConfigError(f"{found}, expected exactly one plugin", path=f"{path}.queueSort", remedy=remedy)
    if not points["bind"]:
        raise ConfigError("found none, expected one plugin or more", path=f"{path}.bind", remedy="enable DefaultBinder")
    if len(points["placementGenerate"]) > 1:
        raise ConfigError("found several, expected at most one plugin", path=f"{path}.placementGenerate")

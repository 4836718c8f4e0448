"""PlacementConfiguration, placement.config.stowplan.io/v1: the plugins that decide placements, listed as in a profile.

    apiVersion: placement.config.stowplan.io/v1
    kind: PlacementConfiguration
    plugins:
      filter: {enabled: [{name: "residency.py:Residency"}]}
      score:
        enabled: [{name: "residency.py:Residency", weight: 3}]
        disabled: [{name: Balance}]
    pluginConfig:
      - name: residency.py:Residency
        args: {label: region}

Sets are merged by kube-scheduler's rules (`plugin_sets`). Weights are those of a placement, from -10 to 10. One that is
missing becomes 1; with 0 a plugin has no say until a placement names it. Without a file the plugins, their order and
their weights are Open Cluster Management's, and our additions: TaintToleration's score, and Spread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stowplan.framework.config import document, plugin_sets
from stowplan.framework.config.configuration import PluginConfigEntry
from stowplan.framework.config.document import ConfigValue, shown, suggestion, under
from stowplan.framework.config.plugin_sets import Enabled, Implements, PluginCatalogue
from stowplan.objects.errors import ConfigError

KIND, VERSION = "PlacementConfiguration", "placement.config.stowplan.io/v1"
MINIMAL = f"the shortest one is: {{apiVersion: {VERSION}, kind: {KIND}}}"
POINTS = ("filter", "score")
DEFAULT_PLUGINS = (("Predicate", 0), ("Balance", 1), ("Steady", 1), ("TaintToleration", 3), ("Spread", 2))
OTHER_KINDS = {
    "ConfigMap": "give the text under its data",
    "KubeSchedulerConfiguration": "it is for `stowplan run`",
}


class PlacementConfiguration(msgspec.Struct, frozen=True):
    """A configuration with all defaults: plugins by point, and each plugin's arguments by name.

    `places`: where the file enables its plugins first, by name.
    """

    points: dict[str, tuple[Enabled, ...]]
    plugin_args: dict[str, dict[str, Any]]
    notes: tuple[str, ...] = ()
    places: dict[str, str] = {}


# --- the file's shape ------------------------------------------------------------------------------------------------


class ClusterPluginRef(ConfigValue, frozen=True):
    name: str
    weight: Annotated[int, Meta(ge=-10, le=10)] | None = None


class ClusterPluginSet(ConfigValue, frozen=True):
    enabled: tuple[ClusterPluginRef, ...] = ()
    disabled: tuple[ClusterPluginRef, ...] = ()


class ClusterPlugins(ConfigValue, frozen=True):
    multi_point: ClusterPluginSet = ClusterPluginSet()
    filter: ClusterPluginSet = ClusterPluginSet()
    score: ClusterPluginSet = ClusterPluginSet()

    def sets(self) -> dict[str, ClusterPluginSet]:
        """Return every set under its name in the file."""
        return {"multiPoint": self.multi_point, "filter": self.filter, "score": self.score}


class _PlacementFile(ConfigValue, frozen=True):
    api_version: str
    kind: str
    plugins: ClusterPlugins = ClusterPlugins()
    plugin_config: tuple[PluginConfigEntry, ...] = ()


# --- loading ---------------------------------------------------------------------------------------------------------


def default(implements: Implements) -> PlacementConfiguration:
    """Return the configuration without a file."""
    return load({"apiVersion": VERSION, "kind": KIND}, implements=implements)


def load(
    text: str | bytes | Mapping[str, Any], *, implements: Implements, known: Collection[str] = (), file: str = ""
) -> PlacementConfiguration:
    """Return the configuration in the text; `known` are plugin names to suggest for a misspelt one."""
    try:
        return _load(document.parse(text, kind=KIND, minimal=MINIMAL), PluginCatalogue(implements, known))
    except ConfigError as error:
        raise error.located(file) from None


def _load(plain: dict[str, Any], catalogue: PluginCatalogue) -> PlacementConfiguration:
    _check_kind(plain)
    given = document.decode(plain, _PlacementFile)
    args = _plugin_args(given)
    merged, names = plugin_sets.merge(given.plugins.sets(), "plugins", catalogue, POINTS, DEFAULT_PLUGINS)
    points = {
        point: tuple(Enabled(each.name, _weight(each.weight) if point == "score" else 0) for each in listed)
        for point, listed in merged.items()
    }
    return PlacementConfiguration(points, args, tuple(_ineffective(given, names, catalogue)), _places(given))


def _places(given: _PlacementFile) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, listed in given.plugins.sets().items():
        for i, each in enumerate(listed.enabled):
            found.setdefault(each.name, f"plugins.{name}.enabled[{i}]")
    return found


def _weight(given: int | None) -> int:
    return 1 if given is None else given


def _check_kind(plain: dict[str, Any]) -> None:
    kind, version = plain.get("kind"), plain.get("apiVersion")
    if kind != KIND:
        remedy = OTHER_KINDS.get(str(kind)) or suggestion(str(kind), [KIND])
        raise ConfigError(f"found {shown(kind)}, expected {shown(KIND)}", path="kind", remedy=remedy)
    if version != VERSION:
        raise ConfigError(f"found {shown(version)}, expected {shown(VERSION)}", path="apiVersion")


def _plugin_args(given: _PlacementFile) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for i, entry in enumerate(given.plugin_config):
        where = f"pluginConfig[{i}]"
        if entry.name in found:
            raise ConfigError(f"plugin {shown(entry.name)} appears twice", path=where)
        if entry.args is not None and not isinstance(entry.args, Mapping):
            raise ConfigError(f"found {shown(entry.args)}, expected a mapping", path=under(where, "args"))
        found[entry.name] = dict(entry.args or {})
    return found


def _ineffective(given: _PlacementFile, names: Collection[str], catalogue: PluginCatalogue) -> Iterator[str]:
    """Yield a note for every setting that has no effect."""
    for i, entry in enumerate(given.plugin_config):
        if entry.name not in names:
            hint = suggestion(entry.name, names) if catalogue.implements(entry.name) is None else ""
            yield f"pluginConfig[{i}]: plugin {shown(entry.name)} is not enabled. {hint}".rstrip()
    for point, each in given.plugins.sets().items():
        for i, plugin in enumerate(each.disabled):
            if plugin.name != "*" and catalogue.implements(plugin.name) is None:
                where = f"plugins.{point}.disabled[{i}]"
                hint = suggestion(plugin.name, catalogue.known)
                yield f"{where}: there is no plugin {shown(plugin.name)} to disable. {hint}".rstrip()

"""Configurations of older versions, which kube-scheduler does not read any more: they are read with notes.

The plugin SelectorSpread ended with v1. In an older file it is left out wherever it is listed: PodTopologySpread, which
is on by default, spreads the pods of a Service, a ReplicaSet or a StatefulSet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stowplan.framework.config.plugin_sets import Enabled, PluginCatalogue, Plugins

OLD = {
    "v1beta3": "kube-scheduler does not read it since 1.29",
    "v1beta2": "kube-scheduler does not read it since 1.28, and its default score weights were different",
    "v1beta1": "kube-scheduler does not read it since 1.25, and its default plugins and weights were different",
}
SELECTOR_SPREAD, POINTS = "SelectorSpread", frozenset(("preScore", "score"))
SUCCESSOR = "PodTopologySpread"
REMOVED_WITH_V1 = f"it ended with v1; {SUCCESSOR} spreads the pods of Services, ReplicaSets and StatefulSets"


def catalogue(current: PluginCatalogue, version: str) -> PluginCatalogue:
    """Return the plugins that a file of this version may name."""
    if version not in OLD or current.implements(SELECTOR_SPREAD) is not None:
        return current

    def implements(name: str) -> Collection[str] | None:
        return POINTS if name == SELECTOR_SPREAD else current.implements(name)

    return PluginCatalogue(implements, current.known)


def left_out(name: str, current: PluginCatalogue) -> bool:
    """True if this plugin of an older version is not there any more."""
    return name == SELECTOR_SPREAD and current.implements(name) is POINTS


def without(
    points: dict[str, tuple[Enabled, ...]], names: frozenset[str], current: PluginCatalogue
) -> tuple[dict[str, tuple[Enabled, ...]], frozenset[str]]:
    """Return the plugins by point, and the names of all, without those that are not there any more."""
    if not left_out(SELECTOR_SPREAD, current):
        return points, names
    kept = {point: tuple(each for each in listed if each.name != SELECTOR_SPREAD) for point, listed in points.items()}
    return kept, names - {SELECTOR_SPREAD}


def version_note(version: str, group: str) -> Iterator[str]:
    if version in OLD:
        yield f"apiVersion: {group}/{version} is old ({OLD[version]}); write {group}/v1"


def plugin_notes(
    plugins: Plugins, points: dict[str, tuple[Enabled, ...]], path: str, current: PluginCatalogue
) -> Iterator[str]:
    """Yield a note for each entry that is left out; `points` are the plugins that the profile has."""
    spreads = any(each.name == SUCCESSOR for each in points["score"])
    hint = "" if spreads else f"; enable {SUCCESSOR}, which this profile does not"
    for point, listed in plugins.sets().items():
        for kind, refs in (("enabled", listed.enabled), ("disabled", listed.disabled)):
            for i, each in enumerate(refs):
                if left_out(each.name, current):
                    more = hint if kind == "enabled" else ""
                    yield f"{path}.{point}.{kind}[{i}]: {each.name} is left out: {REMOVED_WITH_V1}{more}"

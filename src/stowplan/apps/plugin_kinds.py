"""The kinds that the plugins of a configuration read: known ones, and those that the plugins bring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.framework import declared_kinds, wakes
from stowplan.framework.profile import Profile
from stowplan.kube import resources
from stowplan.kube.resources import RESOURCES, ApiResource


def brought(profiles: Iterable[Profile]) -> dict[str, ApiResource]:
    """Return the resources that plugins bring, by the names of their types.

    Raises ConfigError, which names the plugin, if what it declares to read or to write cannot be right.
    """
    return brought_by(_named(profiles))


def brought_by(plugins: Iterable[tuple[str, object]]) -> dict[str, ApiResource]:
    """Return the resources that these plugins bring; each plugin is given with its name."""
    found = declared_kinds.check(plugins, RESOURCES)
    return {name: resources.custom(each.resource, ", ".join(each.plugins)) for name, each in found.items()}


def check(profiles: Iterable[Profile]) -> None:
    """Raise ConfigError, which names the plugin, if what it declares, or waits for (`wakes_on`), cannot be right."""
    listed = list(profiles)
    wakes.check(_named(listed), {*RESOURCES, *brought(listed)})


def notes(profiles: Iterable[Profile]) -> Iterator[str]:
    """Yield notes about kinds, for people who check a configuration."""
    return declared_kinds.unread_wakes(_named(profiles))


def _named(profiles: Iterable[Profile]) -> Iterator[tuple[str, object]]:
    return ((enabled.name, enabled.plugin) for profile in profiles for enabled in profile.all)


def read_by(profiles: Iterable[Profile]) -> dict[str, ApiResource]:
    """Return every resource that the plugins read, pods and nodes included, by the name of its kind."""
    listed = list(profiles)
    known = RESOURCES | brought(listed)
    return {kind: known[kind] for kind in sorted(frozenset[str]().union(*(profile.reads for profile in listed)))}

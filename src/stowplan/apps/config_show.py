"""`stowplan config show`: the plugins of each extension point with their weights, and the arguments of each plugin.

Arguments are shown as a file could have them, with defaults: those of the configuration, and for a plugin of your own
those of its constructor.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from stowplan.apps import json_output
from stowplan.framework.config import arguments
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.config.document import camel, snake
from stowplan.framework.config.plugin_sets import WEIGHTED
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects import yaml_text


def of_profiles(configuration: Configuration, profiles: Mapping[str, Profile]) -> dict[str, Any]:
    """Return the profiles for programs."""
    found = [
        {"schedulerName": name, "points": points(profile.points)} | plugin_config(profile.all, spec.plugin_args)
        for spec, (name, profile) in zip(configuration.profiles, profiles.items(), strict=True)
    ]
    return {"apiVersion": json_output.VERSION, "kind": "EnabledPlugins", "profiles": found}


def points(enabled: Mapping[str, Iterable[Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the plugins of each point that has any, with weights where they count."""
    return {
        point: [{"name": each.name} | ({"weight": each.weight} if point in WEIGHTED else {}) for each in plugins]
        for point, plugins in enabled.items()
        if plugins
    }


def plugin_config(plugins: Iterable[EnabledPlugin[Any]], given: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arguments of the plugins that have any, as `pluginConfig`; nothing if none has."""
    found = {each.name: _arguments(each, given.get(each.name, {})) for each in plugins}
    listed = [{"name": name, "args": args} for name, args in sorted(found.items()) if args]
    return {"pluginConfig": listed} if listed else {}


def _arguments(enabled: EnabledPlugin[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    spelled = {snake(key) for key in given}
    defaults = {} if arguments.is_known(enabled.name) else dict(_defaults(type(enabled.plugin)))
    unset = {camel(name): value for name, value in defaults.items() if name not in spelled}
    return arguments.as_in_file(enabled.name, given) | unset


def _defaults(plugin: type) -> Iterator[tuple[str, Any]]:
    """Yield the defaults of a constructor that a file could have."""
    for name, parameter in inspect.signature(plugin).parameters.items():
        if parameter.default is parameter.empty or parameter.default is None:
            continue
        try:
            yield name, msgspec.json.decode(msgspec.json.encode(parameter.default))
        except (TypeError, msgspec.MsgspecError):
            continue  # a function, say


def text(found: Mapping[str, Any], width: int | None) -> str:
    """Return profiles for people; with a width, lines are wrapped between words."""
    return "\n".join(
        line
        for profile in found["profiles"]
        for line in (profile["schedulerName"], *lines(profile, width, indent="  "))
    )


def lines(profile: Mapping[str, Any], width: int | None, indent: str = "") -> Iterator[str]:
    """Yield the lines of the points and the arguments."""
    for point, plugins in profile["points"].items():
        names = ", ".join(f"{each['name']}*{each['weight']}" if "weight" in each else each["name"] for each in plugins)
        yield from _wrapped(f"{indent}{point}: {names}", width, f"{indent}    ")
    if "pluginConfig" in profile:
        yield f"{indent}pluginConfig:"
        yield textwrap.indent(yaml_text.dump(profile["pluginConfig"]), f"{indent}  ").rstrip()


def _wrapped(line: str, width: int | None, hang: str) -> list[str]:
    if width is None:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)

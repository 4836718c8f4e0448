"""The reference of the configuration: fields, plugins and arguments, from the types that read them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect as types

from stowplan.framework.config import configuration, placement_configuration, settings
from stowplan.framework.config.arguments import _BUILT_IN as ARGUMENTS
from stowplan.framework.config.arguments import arguments as completed_arguments
from stowplan.framework.config.constructor_types import in_words
from stowplan.framework.config.document import camel
from stowplan.framework.config.plugin_sets import DEFAULT_PLUGINS
from stowplan.framework.extension_points import CLUSTERS, NODES, PluginKind
from stowplan.framework.feature_gates import GATES
from stowplan.plugins import BUILT_IN
from stowplan.plugins.clusters import BUILT_IN as CLUSTER_PLUGINS

FIELDS = (
    ("The file", configuration._File),
    ("profiles[]", configuration._Profile),
    ("leaderElection", settings.LeaderElection),
    ("clientConnection", settings.ClientConnection),
    ("extenders[]", settings.Extender),
    ("extenders[].tlsConfig", settings.ExtenderTLS),
)


def reference() -> str:
    """Return the page's generated part as Markdown."""
    return "\n".join(
        [
            "## KubeSchedulerConfiguration",
            *(line for title, kind in FIELDS for line in _fields(title, kind)),
            "## Plugins for nodes",
            "A plugin marked “default” is in every profile unless it is disabled, as in kube-scheduler.",
            *(line for name in BUILT_IN for line in _plugin(name, BUILT_IN[name], NODES, _default_names())),
            "## PlacementConfiguration",
            *_fields("plugins.POINT.enabled[]", placement_configuration.ClusterPluginRef),
            "## Plugins for clusters",
            *(line for name, kind in CLUSTER_PLUGINS.items() for line in _plugin(name, kind, CLUSTERS, _of_clusters())),
            "## Feature gates",
            "",
            "| gate | stage | default | |",
            "|---|---|---|---|",
            *(f"| `{name}` | {gate.stage} | false | {gate.does} |" for name, gate in GATES.items()),
        ]
    )


def _default_names() -> set[str]:
    return {name for name, _ in DEFAULT_PLUGINS}


def _of_clusters() -> set[str]:
    return {name for name, _ in placement_configuration.DEFAULT_PLUGINS}


def _fields(title: str, kind: type) -> Iterator[str]:
    yield from ("", f"### {title}", "", "| field | type | default |", "|---|---|---|")
    yield from (f"| `{name}` | {what} | {default} |" for name, what, default in fields(kind))
    yield ""


def fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield the name in a file, the type in words and the default of each field of a Struct."""
    found = types.type_info(kind)
    assert isinstance(found, types.StructType)
    for field in found.fields:
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        what = "a duration" if isinstance(field.type, types.CustomType) else in_words(field.type)
        yield field.encode_name, what, "required" if field.required else _shown(default)


def _plugin(name: str, plugin: type, kind: PluginKind, defaults: set[str]) -> Iterator[str]:
    points = ", ".join(f"`{point}`" for point in sorted(kind.points_of(plugin)))
    yield from ("", f"### {name}", "", _about(name, plugin), "")
    yield f"{'Default. ' if name in defaults else ''}Points: {points}."
    rows = list(arguments(name, plugin))
    if rows:
        yield from ("", "| argument | type | default |", "|---|---|---|")
        yield from (f"| `{argument}` | {what} | {default} |" for argument, what, default in rows)
    yield ""


def arguments(name: str, plugin: type) -> Iterator[tuple[str, str, str]]:
    """Yield the name in a file, the type in words and the default of each argument of a plugin."""
    if name in ARGUMENTS:
        defaults = completed_arguments(name, None, "")
        for argument, what, default in fields(ARGUMENTS[name][0]):
            if argument not in ("apiVersion", "kind"):
                yield argument, what, default or _shown(defaults.get(argument))
        return
    made_by = vars(plugin).get("__init__")
    hints = inspect.get_annotations(made_by, eval_str=True) if made_by else {}
    for key, parameter in inspect.signature(plugin).parameters.items():
        what = in_words(types.type_info(hints[key])) if key in hints else "any value"
        yield camel(key), what, "required" if parameter.default is parameter.empty else _shown(parameter.default)


def _about(name: str, plugin: type) -> str:
    """Return the first paragraph about a plugin: of its module, if that begins with its name, or of its class."""
    texts = [inspect.getdoc(each) or "" for each in (inspect.getmodule(plugin), plugin)]
    text = next((each for each in texts if each.startswith(name)), texts[1] or texts[0])
    return " ".join(text.split("\n\n")[0].split()).removeprefix(f"{name}: ")


def _shown(default: Any) -> str:
    """Return a default as a file has it; nothing for what is left out, and for what has a table of its own."""
    if default is None or default in ("", b"", (), [], {}) or isinstance(default, msgspec.Struct):
        return ""
    if isinstance(default, list | Mapping):
        return f"`{json.dumps(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if type(default).__name__ == "Seconds":
        return f"`{default:g}s`"
    return f"`{default}`"

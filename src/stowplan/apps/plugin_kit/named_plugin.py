"""The plugin that a command line names: `file.py:Class`, `package.module:Class`, or the name of a known one.

A file that is named on the command line is loaded from wherever it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from stowplan.apps import cluster_objects, plugin_kinds, profile_loader
from stowplan.framework.config.document import snake
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod


def load(name: str, args: Sequence[str] = (), plugin_path: Sequence[Path] = ()) -> Any:
    """Return an instance of the plugin, made from its arguments."""
    registry, known = _registry(name, plugin_path)
    return registry.make(known, arguments(args))


def load_twin(name: str, args: Sequence[str] = (), plugin_path: Sequence[Path] = ()) -> Any:
    """Return an instance of a plugin's twin, made from those of the plugin's arguments that it takes."""
    registry, known = _registry(name, plugin_path)
    twin = registry.find(known)
    taken = inspect.signature(twin).parameters if twin is not None else {}
    return registry.make(known, {key: value for key, value in arguments(args).items() if snake(key) in taken})


def _registry(name: str, plugin_path: Sequence[Path]) -> tuple[Registry, str]:
    """Return the plugins, and the name that they know this one by."""
    if name.endswith(".py"):
        raise ConfigError(f"{name} is a file", remedy=f"name the class in it: {name}:MyPlugin")
    source, _, attribute = name.rpartition(":")
    if not source.endswith(".py"):
        return profile_loader.registry(code=tuple(plugin_path)), name
    file = Path(source)
    if not file.is_file():  # its folder may be one of the plugin path
        return profile_loader.registry(code=(Path(), *plugin_path)), name
    return profile_loader.registry(file.parent, (file.parent, *plugin_path)), f"{file.name}:{attribute}"


def arguments(given: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `--args`: each is KEY=VALUE, the value in YAML, or a YAML file with a mapping."""
    found: dict[str, Any] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if equals and not Path(each).is_file():
            found[key] = _yaml(value, f"--args {key}")
            continue
        mapping = _yaml(profile_loader.read_text(Path(each)), each)
        if not isinstance(mapping, dict):
            raise ConfigError("found no mapping of arguments", file=each, remedy="write each one as `name: value`")
        found |= mapping
    return found


def idle(given: Sequence[str]) -> dict[str, str]:
    """Return the methods of `--idle` that need not have a say, with the reasons."""
    found: dict[str, str] = {}
    for each in given:
        method, _, why = each.partition("=")
        if not method or not why.strip():
            raise ConfigError(
                f"--idle {each!r} gives no reason", remedy='write METHOD=WHY: --idle "permit=it never waits"'
            )
        found[method] = why
    return found


def _yaml(text: str, where: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"not YAML: {' '.join(str(error).split())}", file=where) from None


def pods(files: Sequence[Path]) -> list[Pod]:
    """Return the pods in these files, as pods without a node."""
    found, others = cluster_objects.from_files(files)
    of_kind = [_pending(each) for each in found if isinstance(each, Pod)]
    if files and not of_kind:
        kinds = sorted({type(each).__name__ for each in found} | set(others))
        problem = f"found no Pod, but {', '.join(kinds)}" if kinds else "found no Pod"
        raise ConfigError(problem, file=str(files[0]), remedy="write manifests of kind Pod")
    return of_kind


def _pending(pod: Pod) -> Pod:
    """Return the pod as it was before it got a node; a manifest has no uid yet."""
    metadata = msgspec.structs.replace(pod.metadata, uid=pod.uid or f"uid-of-{pod.key}")
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def objects(files: Sequence[Path], plugin: object) -> list[Object]:
    """Return the objects in these files; the plugin may bring kinds of its own."""
    brought = plugin_kinds.brought_by([(type(plugin).__name__, plugin)])
    problems: list[str] = []
    found, skipped = cluster_objects.from_files(files, brought, problems.append)
    if problems:
        raise ConfigError(problems[0], file=str(files[0]))
    if skipped:
        remedy = "a plugin reads other kinds than ours by a CustomResource in its reads"
        raise ConfigError(f"no plugin can read {', '.join(sorted(skipped))}", file=str(files[0]), remedy=remedy)
    return found

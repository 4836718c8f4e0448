"""The plugin that a command line names: `file.py:Class`, `package.module:Class`, or the name of a known one.

A file that is named on the command line is loaded from wherever it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from stowplan.apps import cluster_objects, plugin_kinds, profile_loader
from stowplan.apps.place import configuration
from stowplan.framework.config.constructor_types import examples
from stowplan.framework.config.document import snake
from stowplan.framework.extension_points import CLUSTERS, EITHER, KINDS, NODES, TELL, PluginKind, kind_of
from stowplan.framework.placement.random_fleets import OF_A_FLEET
from stowplan.framework.registry import Registry
from stowplan.objects import bounded_yaml
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement
from stowplan.objects.pods import Pod

Kind = TypeVar("Kind", bound=Object)


@dataclass(frozen=True)
class NamedPlugin:
    """An instance of a plugin, what it is for, and its twin, which looks at one node or cluster at a time."""

    plugin: Any
    kind: PluginKind
    twin: Any = None


def load(
    name: str, args: Sequence[str] = (), plugin_path: Sequence[Path] = (), *, kind: str | None = None, twin: str = ""
) -> NamedPlugin:
    """Return a plugin that is made from its arguments. `kind`: node or cluster, if the plugin does not tell."""
    plugins, known = _registry(name, plugin_path, kind)
    own = _kind(plugins, name, known, kind)
    made = _made(plugins, known, arguments(args))
    return NamedPlugin(made, own, _twin(twin, args, plugin_path, own) if twin else None)


def _twin(name: str, args: Sequence[str], plugin_path: Sequence[Path], kind: PluginKind) -> Any:
    """Return an instance of a plugin's twin, made from those of the plugin's arguments that it takes."""
    plugins, known = _registry(name, plugin_path, kind.one)
    twin = plugins.find(known)
    _kind(plugins, name, known, kind.one)
    taken = inspect.signature(twin).parameters if twin is not None else {}
    return _made(plugins, known, {key: value for key, value in arguments(args).items() if snake(key) in taken})


def _made(plugins: Registry, known: str, args: Mapping[str, Any]) -> Any:
    """Return a plugin made from arguments of the command line: errors name `--args`, and show how to write it."""
    try:
        return plugins.make(known, args)
    except ConfigError as error:
        place = f"pluginConfig[name={known}].args"
        if not error.path.startswith(place):
            raise
        name = error.path.removeprefix(place).lstrip(".")
        plugin, remedy = plugins.find(known), error.remedy
        for each, example in examples(plugin).items() if plugin is not None else ():
            if error.problem == f"argument {each!r} is missing":
                remedy = f"it has no default; give --args '{each}={example}'"
            elif snake(name) == snake(each):
                given = next((value for key, value in args.items() if snake(key) == snake(each)), None)
                if isinstance(given, str) and example.startswith("["):
                    example = f"[{given}]"
                remedy = remedy or f"values are YAML: --args '{name}={example}'"
        raise ConfigError(error.problem, path=f"--args {name}".strip(), remedy=remedy) from None


def _kind(plugins: Registry, name: str, known: str, wanted: str | None) -> PluginKind:
    """Return what a plugin is for; an error if it does not tell, or is not for what is wanted."""
    plugin = plugins.find(known)
    found = kind_of(plugin) if plugin is not None and plugins.kind is EITHER else plugins.kind
    if wanted and found in (None, KINDS[wanted]):
        return KINDS[wanted]
    if found is None:
        remedy = f"{TELL}, or say --kind node or --kind cluster"
        raise ConfigError(f"neither parameters nor methods tell what {name} chooses", remedy=remedy)
    if wanted:
        raise ConfigError(f"{name} is for {found.about}, expected a plugin for {KINDS[wanted].about}")
    return found


def _registry(name: str, plugin_path: Sequence[Path], kind: str | None) -> tuple[Registry, str]:
    """Return the plugins, and the name that they know this one by."""
    if name.endswith(".py"):
        raise ConfigError(f"{name} is a file", remedy=f"name the class in it: {name}:MyPlugin")
    source, _, attribute = name.rpartition(":")
    if not source:
        return _known(name, kind), name
    file = Path(source)
    if not source.endswith(".py"):
        return Registry({}, code=tuple(plugin_path), kind=EITHER), name
    if not file.is_file():  # its folder may be one of the plugin path
        return Registry({}, code=(Path(), *plugin_path), kind=EITHER), name
    return Registry({}, folder=file.parent, code=(file.parent, *plugin_path), kind=EITHER), f"{file.name}:{attribute}"


def _known(name: str, kind: str | None) -> Registry:
    """Return the plugins that have one of this name: those for nodes, or those for clusters."""
    registries = {NODES.one: profile_loader.registry(), CLUSTERS.one: configuration.registry(Path(), ())}
    having = {each: plugins for each, plugins in registries.items() if plugins.find(name) is not None}
    if kind in having or len(having) == 1:
        return having.get(kind or "", next(iter(having.values())))
    if having:
        problem = f"{name} is the name of a plugin for nodes and of one for clusters"
        raise ConfigError(problem, remedy="say --kind node or --kind cluster")
    raise ConfigError(f"no plugin is called {name!r}")


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
        if str(mapping.get("kind", "")).endswith("Configuration") and ("profiles" in mapping or "plugins" in mapping):
            remedy = "give a file with what is below `args:` there, or each argument as KEY=VALUE"
            raise ConfigError(
                f"found a {mapping['kind']}, expected the plugin's arguments alone", file=each, remedy=remedy
            )
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
        return bounded_yaml.load(text)
    except ConfigError as error:
        raise error.located(where) from None


def pods(files: Sequence[Path]) -> list[Pod]:
    """Return the pods in these files, as pods without a node."""
    return [_pending(each) for each in _of_kinds(files, Pod)]


def _pending(pod: Pod) -> Pod:
    """Return the pod as it was before it got a node; a manifest has no uid yet."""
    metadata = msgspec.structs.replace(pod.metadata, uid=pod.uid or f"uid-of-{pod.key}")
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def placements(files: Sequence[Path]) -> list[Placement]:
    """Return the placements in these files; one without a namespace is in `default`."""
    return [_in_namespace(each) for each in _of_kinds(files, Placement)]


def _in_namespace(placement: Placement) -> Placement:
    metadata = msgspec.structs.replace(placement.metadata, namespace=placement.namespace or "default")
    return msgspec.structs.replace(placement, metadata=metadata)


def _of_kinds(files: Sequence[Path], *wanted: type[Kind]) -> list[Kind]:
    """Return the objects of these kinds; an error if there are files, and none of these in them."""
    found, others = cluster_objects.from_files(files)
    of_kind = [each for each in found if isinstance(each, wanted)]
    if files and not of_kind:
        names = " or ".join(kind.__name__ for kind in wanted)
        kinds = sorted({type(each).__name__ for each in found} | set(others))
        problem = f"found no {names}, but {', '.join(kinds)}" if kinds else f"found no {names}"
        raise ConfigError(problem, file=str(files[0]), remedy=f"write manifests of kind {names}")
    return of_kind


def objects(files: Sequence[Path], named: NamedPlugin) -> list[Object]:
    """Return the objects in these files; a plugin for nodes may bring kinds of its own."""
    if named.kind is CLUSTERS:
        return _of_kinds(files, *OF_A_FLEET)
    brought = plugin_kinds.brought_by([(type(named.plugin).__name__, named.plugin)])
    problems: list[str] = []
    found, skipped = cluster_objects.from_files(files, brought, problems.append)
    if problems:
        raise ConfigError(problems[0], file=str(files[0]))
    if skipped:
        remedy = "a plugin reads other kinds than ours by a CustomResource in its reads"
        raise ConfigError(f"no plugin can read {', '.join(sorted(skipped))}", file=str(files[0]), remedy=remedy)
    return found


def asked(name: str, named: NamedPlugin, pod_files: Sequence[Path], placement_files: Sequence[Path]) -> list[Any]:
    """Return what the plugin is asked about besides what is drawn: pods, or placements."""
    given = {NODES.one: pod_files, CLUSTERS.one: placement_files}
    other = next(kind for one, kind in KINDS.items() if one != named.kind.one)
    if given[other.one]:
        problem = f"{name} is for {named.kind.about}, and is not asked about {other.asked}s"
        raise ConfigError(problem, remedy=f"give --{named.kind.asked}s instead of --{other.asked}s")
    return [*pods(pod_files), *placements(placement_files)]

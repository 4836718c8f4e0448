"""Profiles with built-in and third-party plugins, made from a KubeSchedulerConfiguration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stowplan.apps import plugin_kinds
from stowplan.framework.config import configuration as config
from stowplan.framework.config.configuration import Configuration, ProfileSpec
from stowplan.framework.config.document import snake
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.plugin_faults import error_text
from stowplan.framework.profile import Profile, build_all
from stowplan.framework.registry import Registry, check_arguments, identifies
from stowplan.objects import bounded_yaml
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.plugins import BUILT_IN

GANGS, KUBES_GANGS = "Coscheduling", "GangScheduling"
OWN_NAME = "stowplan"  # the schedulerName that `stowplan run` serves without a configuration file


def registry(
    folder: Path | None = None, code: Sequence[Path] | None = None, gates: FeatureGates = DEFAULT_GATES
) -> Registry:
    """Return all plugins. Data files of plugins start at `folder`; their code may be in the folders `code` only.

    Without `code` it may be in `folder`.
    """
    return Registry(BUILT_IN, folder=folder, code=code, discover=True, gates=gates)


def read_configuration(
    file: Path, plugin_path: Sequence[Path] = (), gates: FeatureGates = DEFAULT_GATES
) -> tuple[Configuration, dict[str, Profile]]:
    """Read a configuration file. Return the configuration and its profiles by scheduler name.

    Code may come from the folder of the file, and from those of `plugin_path`. A note names each file that `stowplan
    run` would not load without a flag.
    """
    found, profiles, _ = read_files(file, plugin_path, gates)
    return found, profiles


def read_files(
    file: Path, plugin_path: Sequence[Path] = (), gates: FeatureGates = DEFAULT_GATES
) -> tuple[Configuration, dict[str, Profile], dict[Path, str]]:
    """Do the same. Return also the texts of the files with arguments of plugins; "" for one that does not exist."""
    plugins = registry(file.parent, (*plugin_path, file.parent), gates)
    configuration, profiles = read_with(plugins, file, read_text(file))
    notes = (*configuration.notes, *code_notes(plugins, plugin_path, "run"))
    return msgspec.structs.replace(configuration, notes=notes), profiles, plugins.argument_files


def code_notes(plugins: Registry, plugin_path: Sequence[Path], command: str) -> Iterator[str]:
    """Yield a note for each file that this command would not load without a flag."""
    for name, folder in plugins.files.items():
        if folder not in plugin_path:
            yield f"{name}: `stowplan {command}` loads it with --plugin-path {folder} only"


def read_text(file: Path) -> str:
    """Return the text of a configuration file. Raises ConfigError, without reading more than such a file may have."""
    most = bounded_yaml.DEFAULT_LIMITS.characters
    try:
        with file.open("rb") as source:
            data = source.read(most + 1)
        if len(data) > most:
            raise ConfigError(f"is longer than {most:,} bytes", file=str(file))
        return data.decode()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(file)) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"is not UTF-8 text: line {line} has the byte 0x{data[error.start]:02x}"
        raise ConfigError(problem, file=str(file)) from None
    except ValueError:
        raise ConfigError("cannot be read: found a null byte in its name", file=repr(str(file))) from None


def read_with(plugins: Registry, file: Path, text: str) -> tuple[Configuration, dict[str, Profile]]:
    """Make profiles of a file's text with these plugins. Errors name the file."""
    with only_config_errors(str(file)):
        return _configured(text, plugins, str(file))


@contextmanager
def only_config_errors(file: str) -> Iterator[None]:
    """Whatever goes wrong inside is a ConfigError that names the file.

    Checks call code of plugins, and a file may hold what nobody thought of.
    """
    try:
        yield
    except ConfigError as error:
        raise error.located(file) from None
    except StowplanError as error:
        raise ConfigError(str(error), file=file) from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"cannot be used: {error_text(error)}", file=file) from error


def configured(
    document: str | bytes | Mapping[str, Any], *, folder: Path | None = None, file: str = ""
) -> tuple[Configuration, dict[str, Profile]]:
    """Read a configuration document. Return the configuration and its profiles by scheduler name."""
    with only_config_errors(file):
        return _configured(document, registry(folder), file)


def _configured(
    document: str | bytes | Mapping[str, Any], plugins: Registry, file: str
) -> tuple[Configuration, dict[str, Profile]]:
    configuration = config.load(document, implements=plugins.implements, known=plugins.names(), file=file)
    doubles = [i for i, spec in enumerate(configuration.profiles) if spec.plugin_args.keys() >= {GANGS, KUBES_GANGS}]
    profiles = tuple(_with_files(_without_double(spec), plugins) for spec in configuration.profiles)
    configuration = msgspec.structs.replace(configuration, profiles=profiles)
    built = _with_shared_plugins(build_all(configuration, plugins), configuration)
    plugin_kinds.check(built.values())
    left_out = (f"profiles[{i}].plugins: {KUBES_GANGS} is left out, {GANGS} does the same and more" for i in doubles)
    notes = (*configuration.notes, *left_out, *_notes(built.values()), *plugin_kinds.notes(built.values()))
    return msgspec.structs.replace(configuration, notes=notes), built


def _without_double(spec: ProfileSpec) -> ProfileSpec:
    """Return the profile without GangScheduling if Coscheduling is there: one of them writes the status of groups."""
    if not spec.plugin_args.keys() >= {GANGS, KUBES_GANGS}:
        return spec
    points = {point: tuple(each for each in at if each.name != KUBES_GANGS) for point, at in spec.points.items()}
    args = {name: each for name, each in spec.plugin_args.items() if name != KUBES_GANGS}
    return msgspec.structs.replace(spec, points=points, plugin_args=args)


def _notes(profiles: Iterable[Profile]) -> Iterator[str]:
    """Yield notes of plugins about their arguments, and about extension points where they are missing."""
    for i, profile in enumerate(profiles):
        for enabled in profile.all:
            points = {point for point, at in profile.points.items() if any(each.name == enabled.name for each in at)}
            if points != {"queueSort"}:  # all profiles must have the same one there, even if they do not use the plugin
                for point, effect in getattr(enabled.plugin, "wanted_at", {}).items():
                    if point not in points:
                        yield f"profiles[{i}].plugins: {enabled.name} is not at {point}: {effect}; enable it there, too"
            for point, other in getattr(enabled.plugin, "instead_of", {}).items():
                if point in points and any(each.name == other for each in profile.points[point]):
                    problem = f"{other} is at {point}, too, so {enabled.name} has no effect of its own there"
                    yield f"profiles[{i}].plugins: {problem}; disable {other} at {point}"
            for note in getattr(enabled.plugin, "config_notes", ()):
                yield f"profiles[{i}].pluginConfig[name={enabled.name}].args: {note}"


class SharedPlugin(NamedTuple):
    """A plugin that all profiles share, its arguments, and the number of the first profile that has it."""

    plugin: object
    args: dict[str, Any]
    profile: int


def _with_shared_plugins(profiles: dict[str, Profile], configuration: Configuration) -> dict[str, Profile]:
    """Return profiles that share one instance of each plugin that declares `one_for_all`."""
    first: dict[type, SharedPlugin] = {}
    for i, (spec, profile) in enumerate(zip(configuration.profiles, profiles.values(), strict=True)):
        for enabled in profile.all:
            if getattr(enabled.plugin, "one_for_all", False):
                given = spec.plugin_args.get(enabled.name, {}).items()
                args = {snake(key): value for key, value in given if not identifies(type(enabled.plugin), key)}
                shared = first.setdefault(type(enabled.plugin), SharedPlugin(enabled.plugin, args, i))
                if args != shared.args:
                    path = f"profiles[{i}].pluginConfig[name={enabled.name}].args"
                    remedy = (
                        "all profiles share this plugin: give it the same arguments in each, or enable it in one only"
                    )
                    raise ConfigError(
                        f"the arguments differ from those in profiles[{shared.profile}]", path=path, remedy=remedy
                    )
    return {name: _with_shared(profile, first) for name, profile in profiles.items()}


def _with_shared(profile: Profile, shared: Mapping[type, SharedPlugin]) -> Profile:
    if not any(type(enabled.plugin) in shared for enabled in profile.all):
        return profile
    points = {
        point: tuple(
            replace(each, plugin=shared[type(each.plugin)].plugin) if type(each.plugin) in shared else each
            for each in plugins
        )
        for point, plugins in profile.points.items()
    }
    return Profile(profile.scheduler_name, points, profile.percentage_of_nodes_to_score)


def _with_files(spec: ProfileSpec, plugins: Registry) -> ProfileSpec:
    """Add the arguments that a plugin reads from a file of its own; arguments in the configuration win."""
    args = {name: dict(found) for name, found in spec.plugin_args.items()}
    for name in {enabled.name for listed in spec.points.values() for enabled in listed}:
        plugin = plugins.find(name)
        named_by, default = getattr(plugin, "args_file", ("", ""))
        if plugin is None or not named_by:
            continue
        own = args.setdefault(name, {})
        spelled = next((key for key in own if snake(key) == snake(named_by)), named_by)
        file = own.pop(spelled, None)
        if file is not None and not (isinstance(file, str) and file):
            where = f"pluginConfig[name={name}].args.{named_by}"
            raise ConfigError(f"found {file!r}, expected the path of a file", path=where)
        path = plugins.folder / (file or default)
        plugins.argument_files[path] = ""
        if file is not None or _exists(path):
            plugins.argument_files[path] = text = read_text(path)
            args[name] = _merged(plugin, _file_args(plugin, path, text), own)
    return msgspec.structs.replace(spec, plugin_args=args)


def _merged(plugin: type, found: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file's arguments, and those of the configuration, which win however they are spelled."""
    alike: Mapping[str, str] = getattr(plugin, "args_alike", {})
    names = {key: alike.get(snake(key), snake(key)) for key in (*found, *own)}
    taken = {names[key] for key in own}
    return {key: value for key, value in found.items() if names[key] not in taken} | dict(own)


def _file_args(plugin: type, file: Path, text: str) -> dict[str, Any]:
    try:
        found = bounded_yaml.load(text, unique_keys=False) or {}
    except ConfigError as error:
        raise error.located(str(file)) from None
    if not isinstance(found, dict):
        raise ConfigError("found no mapping of arguments", file=str(file), remedy="write each one as `name: value`")
    try:
        check_arguments(plugin, found, "")
    except ConfigError as error:
        raise error.located(str(file)) from None
    return found


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except (OSError, ValueError):  # no right to read the folder; a null byte
        return False


def defaults(gates: FeatureGates = DEFAULT_GATES) -> tuple[Configuration, dict[str, Profile]]:
    """Return the default configuration and its profile."""
    plugins = registry(gates=gates)
    configuration = config.default(plugins.implements)
    return configuration, build_all(configuration, plugins)


def for_questions(
    file: Path | None, plugin_path: Sequence[Path] = (), gates: FeatureGates = DEFAULT_GATES
) -> tuple[Configuration, dict[str, Profile]]:
    """Return what questions about pods are answered by: without a file the default profile, for `default-scheduler`
    and for our own name.
    """
    if file is not None:
        return read_configuration(file, plugin_path, gates)
    configuration, profiles = defaults(gates)
    return configuration, profiles | {OWN_NAME: next(iter(profiles.values()))}

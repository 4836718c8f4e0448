"""The plugins that a configuration may name, and how each is made from its arguments.

The caller passes the built-in plugins (`plugins.BUILT_IN` for nodes, `plugins.clusters.BUILT_IN` for clusters). Other
plugins are found by the entry point `stowplan.plugins` or `stowplan.cluster_plugins`, or by path: a plugin's name in a
configuration may be `package.module:Class` (an installed package) or `path/to/file.py:Class` (`plugin_files`: only in
folders that the caller names).
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import inspect
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from stowplan.framework import plugin_files
from stowplan.framework.config.constructor_types import converted
from stowplan.framework.config.document import camel, snake
from stowplan.framework.extension_points import NODES, PluginKind
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.plugin_faults import error_text
from stowplan.objects.errors import ConfigError


class Registry:
    def __init__(
        self,
        plugins: Mapping[str, type],
        *,
        folder: Path | None = None,
        code: Sequence[Path] | None = None,
        discover: bool = False,
        kind: PluginKind = NODES,
        gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        """`folder`: where the paths of data files start. `discover`: find installed plugins, too.

        `code`: the only folders that files with plugins are loaded from; without it, `folder` is the only one.
        `kind`: for nodes or for clusters. `gates`: what built-in plugins with an attribute `feature_gates` get.
        """
        self._given, self.built_in, self.kind = plugins, tuple(plugins), kind
        self._found: dict[str, type] = {}  # installed, or loaded by path or module
        self._folder = folder or Path()
        self._code = (self._folder,) if code is None else tuple(code)
        self._closed, self._gates = False, gates
        self.files: dict[str, Path] = {}  # the folders of plugins that came from files, by name
        self.argument_files: dict[Path, str] = {}  # the texts of files with arguments; empty if there is no such file
        if discover:
            self._discover()

    @property
    def folder(self) -> Path:
        return self._folder

    def closed(self) -> Registry:
        """Return a registry of the same plugins, those loaded by path or module included, that imports no others."""
        registry = Registry(self._given, folder=self._folder, code=(), kind=self.kind, gates=self._gates)
        registry.built_in, registry._found, registry._closed = self.built_in, dict(self._found), True
        return registry

    def names(self) -> list[str]:
        return sorted({*self._given, *self._found})

    def implements(self, name: str) -> frozenset[str] | None:
        """Return the points at which a plugin may be configured; None: there is no such plugin."""
        plugin = self.find(name)
        return None if plugin is None else self.kind.points_of(plugin)

    def find(self, name: str) -> type | None:
        plugin = self._given.get(name) or self._found.get(name)
        if plugin is None and ":" in name:
            plugin = self._found[name] = self._load(name)
        return plugin

    def make(self, name: str, args: Mapping[str, Any], *, path: str = "") -> Any:
        """Make a plugin from its arguments. An unknown argument is an error that suggests the right one."""
        plugin = self.find(name)
        if plugin is None:
            raise ConfigError(f"no plugin is called {name!r}", path=path)
        where = f"{path}.pluginConfig[name={name}].args".lstrip(".")
        check_arguments(plugin, args, where)
        given = {key: value for key, value in args.items() if not identifies(plugin, key)}
        _check_complete(plugin, {snake(key) for key in given}, where)
        keywords = converted(plugin, given, where)
        try:
            made = plugin(**keywords)
        except ConfigError as error:
            named = re.match(r"\w+(?=[.\[\w\]-]*: )", error.problem)  # "labelName: found …"
            key = named[0] if named and not error.path and named[0] in given else error.key
            raise ConfigError(error.problem, path=error.path or where, remedy=error.remedy, key=key) from None
        except (Exception, SystemExit) as error:  # a plugin's constructor may raise anything
            problem = " ".join((str(error) if name in self.built_in else error_text(error)).split())
            raise ConfigError(f"{name} cannot be made from these arguments: {problem}", path=where) from error
        if name in self.built_in and hasattr(plugin, "feature_gates"):
            made.feature_gates = self._gates
        return made

    def _discover(self) -> None:
        for entry in importlib.metadata.entry_points(group=self.kind.entry_points):
            if entry.name in self._given or entry.name in self._found:
                raise ConfigError(f"the installed plugin {entry.value} wants the name {entry.name}, which is taken")
            try:
                found = entry.load()
            except (Exception, SystemExit) as error:  # the import of a foreign package may raise anything
                raise ConfigError(f"the installed plugin {entry.value} cannot be imported: {error!r}") from error
            if not inspect.isclass(found):
                problem = f"the installed plugin {entry.name}, {entry.value}, is {found!r}"
                raise ConfigError(problem, remedy="name a class")
            self._found[entry.name] = self._checked(found, entry.name)

    def _load(self, name: str) -> type:
        """Import the class that `package.module:Class` or `file.py:Class` names."""
        if self._closed:
            remedy = "restart the scheduler: a reload imports no new code"
            raise ConfigError(f"the plugin {name} is not loaded", remedy=remedy)
        source, _, attribute = name.rpartition(":")
        try:
            if source.endswith(".py"):
                file, self.files[name] = plugin_files.found(source, self._code, self._folder)
                module = plugin_files.load(file)
            else:
                _check_module(source)
                module = importlib.import_module(source)
        except ConfigError:
            raise
        except (Exception, SystemExit) as error:  # the import of a plugin may raise anything
            raise ConfigError(f"plugin {name}: {source} cannot be imported: {error!r}") from error
        found = getattr(module, attribute, None)
        if not inspect.isclass(found):
            classes = [key for key, value in vars(module).items() if inspect.isclass(value) and not key.startswith("_")]
            raise ConfigError(f"plugin {name}: {source} has no class {attribute!r}", remedy=_one_of(attribute, classes))
        return self._checked(found, name)

    def _checked(self, plugin: type, name: str) -> type:
        """Return the class if it can be a plugin of this kind."""
        if not self.kind.points_of(plugin):
            raise ConfigError(f"plugin {name} has no method of any extension point", remedy="give it filter or score")
        self.kind.check(plugin, name)
        return plugin


def _check_module(source: str) -> None:
    """Raise an error for a module of Python itself.

    Its classes have methods such as `filter` and `bind`, too, and some of them open files when they are made.
    """
    if source.partition(".")[0] in sys.stdlib_module_names:
        raise ConfigError(f"{source} is a module of Python itself", remedy="name the module of a plugin")


def identifies(plugin: type, key: str) -> bool:
    """True for apiVersion and kind of the arguments, unless the plugin has an argument of that name."""
    return key in ("apiVersion", "kind") and snake(key) not in inspect.signature(plugin).parameters


def check_arguments(plugin: type, args: Mapping[str, Any], where: str) -> None:
    """Raise an error for an argument that the plugin does not take, and for one that is given in two spellings."""
    spelled: dict[str, str] = {}
    for given in args:
        if not isinstance(given, str):
            raise ConfigError(f"found the argument {given!r}, expected a text", path=where, remedy="put it in quotes")
        if spelled.setdefault(snake(given), given) != given:
            both = f"{spelled[snake(given)]!r} and {given!r} are one argument"
            raise ConfigError(both, path=where, remedy="give it once")
    parameters = inspect.signature(plugin).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for given in args:
        if not identifies(plugin, given) and snake(given) not in parameters:
            remedy = _one_of(camel(snake(given)), [camel(name) for name in parameters])
            raise ConfigError(f"unknown argument {given!r}", path=where, remedy=remedy, key=given)


def _check_complete(plugin: type, keywords: Collection[str], where: str) -> None:
    for name, parameter in inspect.signature(plugin).parameters.items():
        if (
            parameter.default is parameter.empty
            and name not in keywords
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ):
            raise ConfigError(
                f"argument {camel(name)!r} is missing", path=where, remedy="it has no default; give it here"
            )


def _one_of(wanted: str, names: list[str]) -> str:
    close = difflib.get_close_matches(wanted, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there is {', '.join(sorted(names))}" if names else "there is none"

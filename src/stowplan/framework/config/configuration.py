"""KubeSchedulerConfiguration, kubescheduler.config.k8s.io/v1, read by kube-scheduler's rules.

    text ── document.parse ──► plain values ── document.decode ──► the file's shape, strictly typed
         ── plugin_sets.expand ► the plugins of each profile, point by point
         ── arguments ───────► each plugin's arguments, checked and completed
         ────────────────────► `Configuration`, or one `ConfigError` that names the place in the file

The caller knows the plugins: `implements(name)` returns the points of a plugin, or None if there is no such plugin.
Settings that are allowed but have no effect (arguments for a plugin that is not enabled) become lines in `notes`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stowplan.framework.config import document, old_versions, plugin_sets, removed, settings
from stowplan.framework.config.argument_types import Percent
from stowplan.framework.config.arguments import GROUP, arguments
from stowplan.framework.config.document import ConfigValue, shown, suggestion, under
from stowplan.framework.config.plugin_sets import PLACEMENT_POINTS, POINTS, Enabled, Implements
from stowplan.framework.config.settings import ClientConnection, Extender, LeaderElection
from stowplan.objects.errors import ConfigError

__all__ = [
    "PLACEMENT_POINTS", "POINTS", "ClientConnection", "Configuration", "Enabled", "Extender", "Implements",
    "LeaderElection", "ProfileSpec", "default", "load",
]  # fmt: skip

KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"
OTHER_KINDS = {
    "ConfigMap": "give the text under its data",
    "PlacementConfiguration": "it is for `stowplan place`",
    "Policy": removed.POLICY,
}
NO_KIND = "a file with arguments of a plugin is checked with the configuration that names it"

Positive32 = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Positive64 = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class ProfileSpec(msgspec.Struct, frozen=True):
    """A profile in the file: its scheduler name, its plugins by point, and each plugin's arguments by name."""

    scheduler_name: str
    points: dict[str, tuple[Enabled, ...]]
    plugin_args: dict[str, dict[str, Any]]
    percentage_of_nodes_to_score: int | None = None


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration file with all defaults."""

    profiles: tuple[ProfileSpec, ...]
    parallelism: int
    percentage_of_nodes_to_score: int | None  # None: not in the file; 0: kube-scheduler's adaptive sample
    pod_initial_backoff_seconds: int
    pod_max_backoff_seconds: int
    leader_election: LeaderElection
    client_connection: ClientConnection
    extenders: tuple[Extender, ...]
    enable_profiling: bool
    enable_contention_profiling: bool
    delay_cache_until_active: bool
    notes: tuple[str, ...]


# --- the file's shape ------------------------------------------------------------------------------------------------


class PluginConfigEntry(ConfigValue, frozen=True):
    name: str
    args: Any = None


class _Profile(ConfigValue, frozen=True):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Percent | None = None
    plugins: plugin_sets.Plugins = plugin_sets.Plugins()
    plugin_config: tuple[PluginConfigEntry, ...] = ()


class _File(ConfigValue, frozen=True):
    api_version: str
    kind: str
    parallelism: Positive32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Percent | None = None
    pod_initial_backoff_seconds: Positive64 = 1
    pod_max_backoff_seconds: Positive64 = 10
    profiles: tuple[_Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False


# --- loading ---------------------------------------------------------------------------------------------------------


def default(implements: Implements) -> Configuration:
    """Return the configuration of a scheduler without a file."""
    return load({"apiVersion": f"{GROUP}/v1", "kind": KIND}, implements=implements)


def load(
    text: str | bytes | Mapping[str, Any], *, implements: Implements, known: Collection[str] = (), file: str = ""
) -> Configuration:
    """Return the configuration in the text; `known` are plugin names to suggest for a misspelt one."""
    try:
        names = {*known, *(name for name, _ in plugin_sets.DEFAULT_PLUGINS)}
        return _load(document.parse(text), plugin_sets.PluginCatalogue(implements, names))
    except ConfigError as error:
        raise error.located(file) from None


def _load(plain: dict[str, Any], catalogue: plugin_sets.PluginCatalogue) -> Configuration:
    version = _version(plain)
    catalogue = old_versions.catalogue(catalogue, version)
    given = document.decode(plain, _File)
    election = settings.completed(given.leader_election)
    extenders = tuple(settings.completed(extender) for extender in given.extenders)
    settings.check_leader_election(election)
    settings.check_extenders(extenders)
    _check_backoff(given)
    profiles = _profiles(given, version, catalogue)
    contention = given.enable_contention_profiling
    return Configuration(
        profiles=tuple(_without_ignored(profile, extenders) for profile in profiles),
        parallelism=given.parallelism,
        percentage_of_nodes_to_score=given.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=given.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=given.pod_max_backoff_seconds,
        leader_election=election,
        client_connection=settings.completed(given.client_connection),
        extenders=extenders,
        enable_profiling=given.enable_profiling,
        enable_contention_profiling=given.enable_profiling if contention is None else contention,
        delay_cache_until_active=given.delay_cache_until_active,
        notes=(*old_versions.version_note(version, GROUP), *_ineffective(given, profiles, catalogue)),
    )


def _version(plain: dict[str, Any]) -> str:
    """Return the version part of apiVersion, if it is a version that can be read."""
    kind, api_version = plain.get("kind"), plain.get("apiVersion")
    if kind != KIND:
        word = kind if isinstance(kind, str) else ""
        remedy = OTHER_KINDS.get(word) or (suggestion(word, [KIND]) if word else NO_KIND)
        raise ConfigError(f"found {shown(kind)}, expected {shown(KIND)}", path="kind", remedy=remedy)
    group, _, version = api_version.partition("/") if isinstance(api_version, str) else ("", "", "")
    if group != GROUP or version not in ("v1", *old_versions.OLD):
        raise ConfigError(f"found {shown(api_version)}, expected {shown(f'{GROUP}/v1')}", path="apiVersion")
    return version


def _profiles(given: _File, version: str, catalogue: plugin_sets.PluginCatalogue) -> list[ProfileSpec]:
    written = given.profiles or (_Profile(),)
    if len(written) == 1 and written[0].scheduler_name is None:
        written = (msgspec.structs.replace(written[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    profiles = [_profile(profile, f"profiles[{i}]", version, catalogue) for i, profile in enumerate(written)]
    _check_names(profiles)
    _check_queue_sort(written, profiles)
    return profiles


def _profile(written: _Profile, path: str, version: str, catalogue: plugin_sets.PluginCatalogue) -> ProfileSpec:
    if not written.scheduler_name:
        raise ConfigError("missing or empty", path=under(path, "schedulerName"), remedy="give every profile a name")
    configured = _plugin_config(written, path, version)
    expanded = plugin_sets.expand(written.plugins, under(path, "plugins"), catalogue)
    points, built = old_versions.without(*expanded, catalogue)
    args = {name: configured[name] if name in configured else arguments(name, None, path) for name in sorted(built)}
    return ProfileSpec(written.scheduler_name, points, args, written.percentage_of_nodes_to_score)


def _plugin_config(written: _Profile, path: str, version: str) -> dict[str, dict[str, Any]]:
    configured: dict[str, dict[str, Any]] = {}
    for i, entry in enumerate(written.plugin_config):
        where = under(path, f"pluginConfig[{i}]")
        if entry.name in configured:
            raise ConfigError(f"plugin {shown(entry.name)} appears twice", path=where)
        if entry.name in removed.NAMES_IN_1_36:
            raise ConfigError(f"plugin {shown(entry.name)} was removed", path=where, remedy="remove the entry")
        configured[entry.name] = arguments(entry.name, entry.args, under(where, "args"), ("v1", version))
    return configured


def _without_ignored(profile: ProfileSpec, extenders: tuple[Extender, ...]) -> ProfileSpec:
    """Return the profile with the resources that only extenders check as NodeResourcesFit's ignoredResources."""
    ignored = [each.name for extender in extenders for each in extender.managed_resources if each.ignored_by_scheduler]
    fit = profile.plugin_args.get("NodeResourcesFit")
    if not ignored or fit is None:
        return profile
    args = {**profile.plugin_args, "NodeResourcesFit": {**fit, "ignoredResources": ignored}}
    return msgspec.structs.replace(profile, plugin_args=args)


# --- what is invalid, or has no effect -------------------------------------------------------------------------------


def _check_backoff(given: _File) -> None:
    if given.pod_max_backoff_seconds < given.pod_initial_backoff_seconds:
        first, last = given.pod_initial_backoff_seconds, given.pod_max_backoff_seconds
        problem = f"found {last}, expected at least podInitialBackoffSeconds ({first})"
        raise ConfigError(problem, path="podMaxBackoffSeconds")


def _check_names(profiles: list[ProfileSpec]) -> None:
    first: dict[str, int] = {}
    for i, profile in enumerate(profiles):
        if (other := first.setdefault(profile.scheduler_name, i)) != i:
            problem = f"{shown(profile.scheduler_name)} is the name of profiles[{other}] already"
            raise ConfigError(problem, path=f"profiles[{i}].schedulerName")


def _check_queue_sort(written: tuple[_Profile, ...], profiles: list[ProfileSpec]) -> None:
    """Raise an error if profiles differ in their queueSort: all profiles share one queue."""
    sort = profiles[0].points["queueSort"]
    for i, profile in enumerate(profiles):
        path = f"profiles[{i}].plugins.queueSort"
        if written[i].plugins.queue_sort != written[0].plugins.queue_sort or profile.points["queueSort"] != sort:
            raise ConfigError("differs from profiles[0]", path=path, remedy="write the same queueSort in every profile")
        if profile.plugin_args[sort[0].name] != profiles[0].plugin_args[sort[0].name]:
            problem = f"the arguments of {sort[0].name}, the queueSort plugin, differ from profiles[0]"
            raise ConfigError(problem, path=f"profiles[{i}].pluginConfig")


def _ineffective(given: _File, profiles: list[ProfileSpec], catalogue: plugin_sets.PluginCatalogue) -> Iterator[str]:
    """Yield a note for every setting that kube-scheduler accepts although it has no effect."""
    if given.enable_contention_profiling:
        yield "enableContentionProfiling: has no effect: there is no profile of contended locks"
    for i, (written, profile) in enumerate(zip(given.profiles, profiles, strict=False)):
        yield from old_versions.plugin_notes(written.plugins, profile.points, f"profiles[{i}].plugins", catalogue)
        for j, entry in enumerate(written.plugin_config):
            if entry.name not in profile.plugin_args:
                hint = _hint(entry.name, profile.plugin_args) if catalogue.implements(entry.name) is None else ""
                yield f"profiles[{i}].pluginConfig[{j}]: plugin {shown(entry.name)} is not enabled. {hint}".rstrip()
        for point, each in written.plugins.sets().items():
            for j, plugin in enumerate(each.disabled):
                if plugin.name != "*" and catalogue.implements(plugin.name) is None:
                    hint = _hint(plugin.name, catalogue.known)
                    where = f"profiles[{i}].plugins.{point}.disabled[{j}]"
                    yield f"{where}: there is no plugin {shown(plugin.name)} to disable. {hint}".rstrip()


def _hint(name: str, known: Collection[str]) -> str:
    return f"It was removed: {removed.PLUGINS[name]}" if name in removed.PLUGINS else suggestion(name, known)

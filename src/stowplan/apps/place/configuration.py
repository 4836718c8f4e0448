"""The plugins that `stowplan place` decides with: of a PlacementConfiguration, or the default ones.

With `--compatibility=ocm` a file may list plugins, too. What it does not change is as in Open Cluster Management, and
it cannot enable our additions: the score of TaintToleration, and Spread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from stowplan.apps.config_file import WatchedFile, digest
from stowplan.apps.profile_loader import code_notes, only_config_errors, read_text
from stowplan.framework.config import placement_configuration
from stowplan.framework.config.placement_configuration import PlacementConfiguration
from stowplan.framework.extension_points import CLUSTERS
from stowplan.framework.placement.policy import ClusterPolicy, build, points_in
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError
from stowplan.plugins import clusters
from stowplan.plugins.clusters.add_on import add_on


@dataclass(frozen=True)
class LoadedPolicy:
    """A configuration, the policy that is made of it, and a digest of the text it was read from."""

    policy: ClusterPolicy
    configuration: PlacementConfiguration = field(default_factory=lambda: PlacementConfiguration({}, {}))
    digest: str = ""


def registry(folder: Path, code: Sequence[Path]) -> Registry:
    """Return all cluster plugins. Their code may be in the folders `code` only."""
    return Registry(clusters.BUILT_IN, folder=folder, code=code, discover=True, kind=CLUSTERS)


def policy_file(file: Path, plugin_path: Sequence[Path] = (), *, ocm: bool) -> WatchedFile[LoadedPolicy]:
    """Return the file of a service, which is read again when it changes. `plugin_path`: where code may come from."""
    return WatchedFile(file, registry(file.parent, tuple(plugin_path)), lambda *given: read_with(*given, ocm=ocm))


def load_policy(file: Path | None, plugin_path: Sequence[Path] = (), *, ocm: bool = False) -> LoadedPolicy:
    """Read a configuration file; None: the default plugins.

    Code may come from the folder of the file, and from those of `plugin_path`. A note names each file that `stowplan
    place` would not load without a flag.
    """
    if file is None:
        return default(ocm=ocm)
    plugins = registry(file.parent, (*plugin_path, file.parent))
    loaded = read_with(plugins, file, read_text(file), ocm=ocm)
    notes = (*loaded.configuration.notes, *code_notes(plugins, plugin_path, "place"))
    return replace(loaded, configuration=msgspec.structs.replace(loaded.configuration, notes=notes))


def default(*, ocm: bool = False) -> LoadedPolicy:
    plugins = Registry(clusters.BUILT_IN, kind=CLUSTERS)
    configuration = placement_configuration.default(points_in(plugins, ocm=ocm))
    return LoadedPolicy(build(configuration, plugins, add_on, ocm=ocm), configuration)


def read_with(plugins: Registry, file: Path, text: str, *, ocm: bool) -> LoadedPolicy:
    """Make a policy of a file's text with these plugins. Errors name the file."""
    with only_config_errors(str(file)):
        implements = points_in(plugins, ocm=ocm)
        configuration = placement_configuration.load(text, implements=implements, known=plugins.names())
        policy = build(configuration, plugins, add_on, ocm=ocm)
        _check_kinds(policy, configuration)
        return LoadedPolicy(policy, configuration, digest(text))


def _check_kinds(policy: ClusterPolicy, configuration: PlacementConfiguration) -> None:
    """Raise an error for a plugin that declares kinds: they would not be watched, and nothing would be written."""
    for enabled in policy.plugins:
        for attribute in ("reads", "writes"):
            declared = getattr(enabled.plugin, attribute, ())
            if isinstance(declared, Collection) and len(declared):  # a method of that name declares nothing
                raise ConfigError(
                    "a cluster policy cannot bring or write kinds yet",
                    path=configuration.places.get(enabled.name, enabled.name),
                    remedy=f"remove {attribute} from {enabled.name}; it can read clusters and AddOnPlacementScores",
                )

"""The plugins that `stowplan place` decides with: of a PlacementConfiguration, or the default ones.

With `--compatibility=ocm` a file may list plugins, too. What it does not change is as in Open Cluster Management, and
it cannot enable our additions: the score of TaintToleration, and Spread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from stowplan.apps.config_file import WatchedFile, digest
from stowplan.apps.profile_loader import read_text
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


def registry(folder: Path | None = None) -> Registry:
    """Return all cluster plugins. A plugin that is given by its path is searched for in `folder`."""
    return Registry(clusters.BUILT_IN, folder=folder, discover=True, kind=CLUSTERS)


def policy_file(file: Path, *, ocm: bool) -> WatchedFile[LoadedPolicy]:
    """Return the file of a service, which is read again when it changes."""
    return WatchedFile(file, registry(file.parent), lambda *given: read_with(*given, ocm=ocm))


def load_policy(file: Path | None, *, ocm: bool = False) -> LoadedPolicy:
    """Read a configuration file; None: the default plugins."""
    if file is None:
        return default(ocm=ocm)
    return read_with(registry(file.parent), file, read_text(file), ocm=ocm)


def default(*, ocm: bool = False) -> LoadedPolicy:
    plugins = Registry(clusters.BUILT_IN, kind=CLUSTERS)
    configuration = placement_configuration.default(points_in(plugins, ocm=ocm))
    return LoadedPolicy(build(configuration, plugins, add_on, ocm=ocm), configuration)


def read_with(plugins: Registry, file: Path, text: str, *, ocm: bool) -> LoadedPolicy:
    """Make a policy of a file's text with these plugins. Errors name the file."""
    try:
        implements = points_in(plugins, ocm=ocm)
        configuration = placement_configuration.load(text, implements=implements, known=plugins.names())
        return LoadedPolicy(build(configuration, plugins, add_on, ocm=ocm), configuration, digest(text))
    except ConfigError as error:
        raise error.located(str(file)) from None

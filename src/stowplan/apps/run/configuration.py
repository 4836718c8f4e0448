"""The configuration that `stowplan run` works by: read from a file, or the default one."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from stowplan.apps import profile_loader
from stowplan.apps.profile_loader import OWN_NAME
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.profile import Profile


@dataclass(frozen=True)
class LoadedConfiguration:
    """A configuration, its profiles by scheduler name, and a digest of the text it was read from."""

    configuration: Configuration
    profiles: dict[str, Profile]
    digest: str = ""


def instead_of_kube_scheduler(gates: FeatureGates = DEFAULT_GATES) -> LoadedConfiguration:
    """Return the default configuration, for `default-scheduler`."""
    return LoadedConfiguration(*profile_loader.defaults(gates))


def beside_kube_scheduler(gates: FeatureGates = DEFAULT_GATES) -> LoadedConfiguration:
    """Return the default configuration, for a scheduler name of our own."""
    configuration, profiles = profile_loader.defaults(gates)
    default = profiles["default-scheduler"]
    own = Profile(OWN_NAME, default.points, default.percentage_of_nodes_to_score)
    spec = msgspec.structs.replace(configuration.profiles[0], scheduler_name=OWN_NAME)
    return LoadedConfiguration(msgspec.structs.replace(configuration, profiles=(spec,)), {OWN_NAME: own})

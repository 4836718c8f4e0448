"""Policies for tests: what a plugin of somebody else could look like, and the policy that a configuration makes."""

from __future__ import annotations

from typing import Any

from stowplan.framework.config import placement_configuration
from stowplan.framework.config.placement_configuration import KIND, VERSION
from stowplan.framework.extension_points import CLUSTERS
from stowplan.framework.placement.policy import ClusterPolicy, build, points_in
from stowplan.framework.registry import Registry
from stowplan.plugins.clusters import BUILT_IN
from stowplan.plugins.clusters.add_on import add_on


def a_policy(
    *plugins: type, weight: int | None = None, ocm: bool = False, args: dict[str, Any] | None = None, **sets: Any
) -> ClusterPolicy:
    """Return the default policy and these plugins, at every point they have. `sets` are further sets of the file."""
    registry = Registry(BUILT_IN | {each.__name__: each for each in plugins}, kind=CLUSTERS)
    registry.built_in = tuple(BUILT_IN)
    weighed = {} if weight is None else {"weight": weight}
    own = {"multiPoint": {"enabled": [{"name": each.__name__} | weighed for each in plugins]}} if plugins else {}
    document = {
        "apiVersion": VERSION,
        "kind": KIND,
        "plugins": own | sets,
        "pluginConfig": [{"name": name, "args": given} for name, given in (args or {}).items()],
    }
    configuration = placement_configuration.load(
        document, implements=points_in(registry, ocm=ocm), known=registry.names()
    )
    return build(configuration, registry, add_on, ocm=ocm)

"""The categories. Each is a function that fills a scenario with objects about one subject, and some of all others."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.draw.categories.capacity import image_locality, resources, scoring
from tests.oracle.draw.categories.devices import DEVICES
from tests.oracle.draw.categories.mixture import large, misc, mixed
from tests.oracle.draw.categories.node_constraints import names_and_ports, node_affinities, taints
from tests.oracle.draw.categories.other_pods import inter_pod_affinity, topology_spread
from tests.oracle.draw.categories.pending import pending, pending_full, pending_storage
from tests.oracle.draw.categories.preemption import preemption
from tests.oracle.draw.categories.storage import volumes
from tests.oracle.draw.scenario import Scenario

CATEGORIES: dict[str, Callable[[Scenario], None]] = {
    "resources": resources,
    "scoring-strategies": scoring,
    "taints": taints,
    "node-affinity": node_affinities,
    "node-name-ports": names_and_ports,
    "inter-pod-affinity": inter_pod_affinity,
    "topology-spread": topology_spread,
    "image-locality": image_locality,
    "volumes": volumes,
    "misc": misc,
    "preemption": preemption,
    "everything-mixed": mixed,
    "pending": pending,
    "pending-full": pending_full,
    "pending-storage": pending_storage,
    "large": large,
    **DEVICES,
}

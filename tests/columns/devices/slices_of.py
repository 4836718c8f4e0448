"""Slices for tests of devices."""

from __future__ import annotations

from typing import Any

from stowplan.objects.kinds import convert
from stowplan.objects.resource_slices import ResourceSlice

DRIVER = "gpu.example.com"


def a_slice(
    name: str = "slice",
    *devices: str | dict[str, Any],
    pool: str = "pool",
    driver: str = DRIVER,
    generation: int = 1,
    number: int = 1,
    **spec: Any,
) -> ResourceSlice:
    """Return a slice with these devices; `number` is how many slices the pool has. It is for all nodes by default."""
    where = {} if {"nodeName", "nodeSelector", "perDeviceNodeSelection"} & spec.keys() else {"allNodes": True}
    listed = [{"name": each} if isinstance(each, str) else each for each in devices]
    of_pool = {"name": pool, "generation": generation, "resourceSliceCount": number}
    body = {"driver": driver, "pool": of_pool, "devices": listed, **where, **spec}
    return convert(ResourceSlice, {"metadata": {"name": name}, "spec": body})

"""The second scene of the demo: the cluster is a hub with a Placement, whose primary cluster is deleted and created."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from stowplan.apps.logging import Log
from stowplan.apps.place.options import PlaceOptions
from stowplan.apps.place.service import PlacementService
from stowplan.apps.up.command import create, delete
from stowplan.embedded.cluster import Embedded
from stowplan.objects.placements import PlacementDecision


async def play(cluster: Embedded, fleet: Mapping[str, Any], kubeconfig: Path, log: Log) -> list[str]:
    """Play the scene. Return the clusters that the placement was given, one after the other."""
    primary = next(each for each in fleet["objects"] if each["metadata"]["name"] == fleet["primary"])
    for each in fleet["objects"]:
        create(cluster, each["apiVersion"], each["kind"], each)
    async with _placing(kubeconfig, log) as program:
        journey = [await _next(program, "")]
        delete(cluster, primary["apiVersion"], primary["kind"], fleet["primary"])
        journey.append(await _next(program, journey[-1]))
        create(cluster, primary["apiVersion"], primary["kind"], primary)
        journey.append(await _next(program, journey[-1]))
    return journey


@asynccontextmanager
async def _placing(kubeconfig: Path, log: Log) -> AsyncIterator[PlacementService]:
    """`stowplan place`, in this process."""
    program = PlacementService(PlaceOptions(kubeconfig=str(kubeconfig), leader_elect=False, secure_port=0), log)
    running = asyncio.ensure_future(program.main())
    try:
        yield program
    finally:
        program.stop()
        await running


async def _next(program: PlacementService, before: str) -> str:
    """Wait until another cluster is chosen, and return it."""
    while True:
        known = program.reflectors.get("PlacementDecision")
        found = () if known is None else known.cache.objects.values()
        chosen = [name for each in found if isinstance(each, PlacementDecision) for name in each.cluster_names]
        if chosen and chosen != [before]:
            return chosen[0]
        await asyncio.sleep(0.05)

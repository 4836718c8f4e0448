"""Follow a Placement: run a workload in the clusters that the Placement selects, and in no others.

    python follow.py NAMESPACE/PLACEMENT workload.yaml --hub hub.kubeconfig \\
        --cluster primary=primary.kubeconfig --cluster backup=backup.kubeconfig

The program watches PlacementDecisions. It creates the Deployment in clusters that are selected, and then deletes it in
clusters that are not selected any more. A cluster that does not answer does not delay the others: the program tries it
again until it answers, since a dead primary must lose its copy when it comes back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml

from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import RESOURCES
from stowplan.kube.responses import Response, WireError
from stowplan.kube.transport import Transport
from stowplan.objects.placements import PlacementDecision

DEPLOYMENTS = RESOURCES["Deployment"]
ANSWER_WITHIN = 5.0  # seconds
AGAIN_AFTER = 2.0  # seconds


class Follower:
    def __init__(self, placement: str, workload: dict[str, Any], hub: Client, clusters: dict[str, Client]) -> None:
        self._placement, self._workload, self._clusters = placement, workload, clusters
        self._changed = asyncio.Event()
        self._decisions = Reflector(hub, RESOURCES["PlacementDecision"], lambda _: self._changed.set())

    async def run(self) -> None:
        """Until cancelled."""
        watching = asyncio.ensure_future(self._decisions.run())
        try:
            await self._decisions.synced.wait()
            while True:
                self._changed.clear()
                settled = await self._settle()
                try:
                    async with asyncio.timeout(None if settled else AGAIN_AFTER):
                        await self._changed.wait()
                except TimeoutError:
                    continue
        finally:
            watching.cancel()

    def _chosen(self) -> set[str]:
        """All slices count: a cluster is given up only if it is in none of them."""
        found = self._decisions.cache.objects.values()
        mine = (each for each in found if isinstance(each, PlacementDecision) and each.placement == self._placement)
        return {name for decision in mine for name in decision.cluster_names}

    async def _settle(self) -> bool:
        """Whether every cluster is now as it should be."""
        chosen = self._chosen() & self._clusters.keys()
        started = await asyncio.gather(*(self._start(name) for name in sorted(chosen)))
        if not all(started):
            return False
        return all(await asyncio.gather(*(self._end(name) for name in sorted(self._clusters.keys() - chosen))))

    async def _start(self, name: str) -> bool:
        metadata = self._workload["metadata"]
        return await self._ask(
            name,
            409,
            lambda client, until: client.create(DEPLOYMENTS, metadata["namespace"], self._workload, until=until),
        )

    async def _end(self, name: str) -> bool:
        metadata = self._workload["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        return await self._ask(name, 404, lambda client, until: client.delete(DEPLOYMENTS, key, until=until))

    async def _ask(self, name: str, fine_too: int, question: Callable[[Client, float], Awaitable[Response]]) -> bool:
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                until = asyncio.get_running_loop().time() + ANSWER_WITHIN
                answer = await question(self._clusters[name], until)
        except (WireError, TimeoutError) as error:
            logging.warning("%s does not answer: %s", name, error)
            return False
        if answer.ok:
            logging.info("%s: %s", name, "ended" if fine_too == 404 else "started")
        return answer.ok or answer.status == fine_too


async def main() -> None:
    asked = argparse.ArgumentParser(description="Run a workload in the clusters that a Placement has.")
    asked.add_argument("placement", help="NAMESPACE/NAME")
    asked.add_argument("workload", type=Path, help="a Deployment")
    asked.add_argument("--hub", required=True, help="the hub's kubeconfig")
    asked.add_argument("--cluster", action="append", default=[], help="NAME=KUBECONFIG, as often as needed")
    given = asked.parse_args()
    workload = yaml.safe_load(given.workload.read_text(encoding="utf-8"))
    workload["metadata"].setdefault("namespace", "default")
    files = dict(each.split("=", 1) for each in given.cluster)
    hub, *others = (Client(Transport(credentials.load(file))) for file in (given.hub, *files.values()))
    try:
        await Follower(given.placement, workload, hub, dict(zip(files, others, strict=True))).run()
    finally:
        await asyncio.gather(*(client.close() for client in (hub, *others)))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())

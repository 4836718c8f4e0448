"""The task of one member cluster: do what is due there, then wait; after a failure, wait longer each time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from stowplan.apps.place.follow.manifest import Document
from stowplan.apps.place.follow.member_cluster import KindAndNamespace, MemberCluster, WorkloadWrite
from stowplan.apps.place.follow.rollout import Duty
from stowplan.kube.client import Client
from stowplan.kube.rate_limits import Backoff
from stowplan.objects.errors import StowplanError

if TYPE_CHECKING:
    from stowplan.apps.place.follow.service import FollowService

TURN_WITHIN = 30.0  # seconds for all requests of one turn
LOOK_AGAIN = 1.0  # seconds until a cluster that has to wait asks again
LONGEST_BACKOFF = 60.0  # seconds
PAST_TENSE = {"create": "Created", "patch": "Brought back", "delete": "Deleted"}


class MemberTask:
    """`digest`: of the kubeconfig that the client was made of. `problem`: of the last turn; empty if it went well."""

    def __init__(self, name: str, service: FollowService, client: Client, namespace: str, digest: str) -> None:
        self.digest, self.problem, self.started = digest, "", False
        self.wake = asyncio.Event()
        self._name, self._service, self._ended = name, service, False
        options = service.options
        self._cluster = MemberCluster(client, options.follower, namespace, adopt=options.adopt, on_write=self._written)
        self._backoff = Backoff(random.Random(), first=1.0, longest=LONGEST_BACKOFF)

    def end(self) -> None:
        """No more turns: the cluster is gone, or has a new kubeconfig."""
        self._ended = True
        self.wake.set()

    async def run(self) -> None:
        """Until it is ended."""
        while not self._ended:
            self.wake.clear()
            wait = await self.turn()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self.wake.wait()

    async def turn(self) -> float:
        """Do what is due in this cluster. Return the seconds until the next turn."""
        rollout = self._service.rollout
        duty = rollout.duty(self._name, time.monotonic())
        if duty is Duty.WAIT:
            return LOOK_AGAIN
        digest = self._service.manifest.digest
        try:
            async with asyncio.timeout(TURN_WITHIN):
                await self._cluster.settle(*self._wanted(duty))
        except (StowplanError, TimeoutError) as error:
            return self._failed(str(error) or f"no answer within {TURN_WITHIN:g} s")
        except Exception as error:  # whatever is in that cluster, the others go on
            return self._failed(f"{type(error).__name__}: {error}")
        if self.problem:
            self._service.log.info("The cluster is in order again", cluster=self._name)
        self.problem = ""
        self._backoff.reset()
        current = digest == self._service.manifest.digest
        if current and rollout.note(self._name, has_it=duty is Duty.HAVE):
            self._service.wake_members()  # others may have waited for this
        return self._service.options.resync if current else 0.0

    async def plan(self, duty: Duty) -> list[WorkloadWrite]:
        """Return what would be written."""
        try:
            async with asyncio.timeout(TURN_WITHIN):
                return await self._cluster.plan(*self._wanted(duty))
        except TimeoutError:
            raise StowplanError(f"no answer within {TURN_WITHIN:g} s") from None

    def _wanted(self, duty: Duty) -> tuple[Sequence[Document], list[KindAndNamespace]]:
        return (self._service.manifest.objects if duty is Duty.HAVE else ()), list(self._service.kinds)

    def _failed(self, problem: str) -> float:
        self._service.rollout.note(self._name, has_it=False)
        wait = self._backoff.wait()
        if problem != self.problem:
            self._service.log.warning("A cluster is not in order", cluster=self._name, problem=problem)
        self._service.log.info("A cluster is tried again", level=2, cluster=self._name, seconds=round(wait, 1))
        self.problem = problem
        return wait

    def _written(self, write: WorkloadWrite) -> None:
        self._service.metrics.writes.labels(self._name, write.does).inc()
        self._service.log.info(PAST_TENSE[write.does], cluster=self._name, kind=write.kind, object=write.key)

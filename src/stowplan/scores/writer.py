"""Writes scores to the hub: creates an AddOnPlacementScore if necessary, then patches its status.

A patch carries the resource version that it is based on. After a conflict (409) the object is read and the decision
made again, so that no condition of another writer is lost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import TypeAlias

from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.kube.responses import RefusedError, Response
from stowplan.kube.transport import Transport
from stowplan.objects import kinds
from stowplan.objects.clusters import AddOnPlacementScore, ClusterCondition
from stowplan.objects.clusters import AddOnPlacementScoreStatus as Status
from stowplan.objects.errors import ConfigError
from stowplan.scores.publication import Validity, status_due, status_failed

SCORES = RESOURCES["AddOnPlacementScore"]
MAX_ATTEMPTS = 5
REQUEST_TIMEOUT = 30.0  # seconds for a request with its retries
Decide: TypeAlias = Callable[[Status], Status | None]


class Outcome(Enum):
    UNCHANGED = "unchanged"  # nothing was written
    REFRESHED = "refreshed"  # the same scores, valid for longer
    WRITTEN = "written"


class ScoreWriter:
    """Writes the objects of one name, each in the namespace of a cluster.

    `known` returns an object from a watch; without it each object is read.
    """

    def __init__(
        self,
        client: Client,
        resource_name: str = "default",
        *,
        validity: Validity | None = None,
        known: Callable[[str], AddOnPlacementScore | None] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        generator: random.Random | None = None,
    ) -> None:
        self._client, self._name, self._known, self._now = client, resource_name, known, now
        self._validity = Validity() if validity is None else validity
        self._generator = generator or random.Random()
        self._resource: ApiResource | None = None

    async def read(self, cluster: str) -> AddOnPlacementScore | None:
        """The object on the hub. Raises `RefusedError` if it may not be read."""
        resource = await self._served()
        answer = await self._client.get(resource, f"{cluster}/{self._name}", until=self._deadline())
        if answer.status == 404:
            return None
        return kinds.decode(AddOnPlacementScore, answer.checked(f"GET {cluster}/{self._name}").body)

    async def publish(self, cluster: str, scores: Mapping[str, int]) -> Outcome:
        """Write these scores of the cluster. Raises `RefusedError` if the hub refuses."""
        now, draw = self._now(), self._generator.random()
        return await self._write(
            cluster, lambda known: status_due(known, scores, now, validity=self._validity, draw=draw)
        )

    async def fail(self, cluster: str, reason: str, message: str) -> Outcome:
        """Write a condition that says why there are no new scores. Without an object nothing is written."""
        now = self._now()
        return await self._write(cluster, lambda known: status_failed(known, reason, message, now), create=False)

    async def _write(self, cluster: str, decide: Decide, *, create: bool = True) -> Outcome:
        found = await self.read(cluster) if self._known is None else self._known(cluster)
        for _ in range(MAX_ATTEMPTS):
            status = decide(Status() if found is None else found.status)
            if status is None or (found is None and not create):
                return Outcome.UNCHANGED
            before = found or await self._create(cluster)
            answer = None if before is None else await self._patch(cluster, before, status)
            if answer is not None and answer.status not in (404, 409):
                answer.checked(f"PATCH {cluster}/{self._name}")
                same = before is not None and before.status.scores == status.scores
                return Outcome.REFRESHED if same and found is not None else Outcome.WRITTEN
            found = await self.read(cluster)
        raise RefusedError(f"{cluster}/{self._name}", 409, f"still a conflict after {MAX_ATTEMPTS} attempts")

    async def _create(self, cluster: str) -> AddOnPlacementScore | None:
        """Create the object, without a status. Return None if it exists already."""
        resource = await self._served()
        body = {
            "apiVersion": f"{resource.group}/{resource.versions[0]}",
            "kind": "AddOnPlacementScore",
            "metadata": {"name": self._name, "namespace": cluster},
        }
        answer = await self._client.create(resource, cluster, body, until=self._deadline())
        if answer.status == 409:
            return None
        answer.checked(f"POST {cluster}/{self._name}")
        return kinds.decode(AddOnPlacementScore, answer.body)

    async def _patch(self, cluster: str, before: AddOnPlacementScore, status: Status) -> Response:
        resource = await self._served()
        body = {"metadata": {"resourceVersion": before.metadata.resource_version}, "status": as_document(status)}
        key = f"{cluster}/{self._name}"
        return await self._client.patch(resource, key, body, subresource="status", until=self._deadline())

    async def _served(self) -> ApiResource:
        if self._resource is None:
            self._resource = await self._client.served(SCORES)
        if self._resource is None:
            remedy = "install the definitions: kubectl apply -k deploy/crds/placement/"
            raise ConfigError(f"the hub has no AddOnPlacementScore ({SCORES.group}/v1alpha1)", remedy=remedy)
        return self._resource

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + REQUEST_TIMEOUT


@asynccontextmanager
async def score_writer(
    resource_name: str = "default",
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    validity: Validity | None = None,
) -> AsyncIterator[ScoreWriter]:
    """A writer that is connected to a hub; without a kubeconfig, to the cluster that kubectl would use.

    async with score_writer("latency", validity=Validity(seconds=600, margin=180)) as writer:
        await writer.publish("cluster1", {"ms": 80})
    """
    client = Client(Transport(credentials.load(kubeconfig, context)))
    try:
        yield ScoreWriter(client, resource_name, validity=validity)
    finally:
        await client.close()


def as_document(status: Status) -> dict[str, object]:
    """The status as JSON; a missing time is null, which removes it."""
    return {
        "scores": [{"name": score.name, "value": score.value} for score in status.scores],
        "validUntil": None if status.valid_until is None else stamp(status.valid_until),
        "conditions": [_condition(each) for each in status.conditions],
    }


def _condition(condition: ClusterCondition) -> dict[str, object]:
    """A condition as JSON; the message may be empty, the observed generation is optional."""
    found = {"type": condition.type, "status": condition.status, "reason": condition.reason}
    since = {"lastTransitionTime": stamp(condition.last_transition_time)} if condition.last_transition_time else {}
    made_for = {"observedGeneration": condition.observed_generation} if condition.observed_generation else {}
    return {**found, "message": condition.message, **since, **made_for}


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""What tests of the client do with a cluster that is there: connect, reflect, make and look at pods."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from stowplan.kube import kubeconfig
from stowplan.kube.client import Client
from stowplan.kube.credentials import Access
from stowplan.kube.kubeconfig import KubeconfigUser, ResolvedContext
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import ApiResource
from stowplan.kube.transport import Transport
from stowplan.objects.actions import PodRef
from stowplan.objects.changes import Change, Put
from stowplan.objects.meta import Object
from tests.controlplane.cluster import Cluster


@asynccontextmanager
async def connected(access: Access) -> AsyncIterator[Client]:
    client = Client(Transport(access, generator=random.Random(1)))
    try:
        yield client
    finally:
        await client.close()


def as_admin(cluster: Cluster, server: str = "") -> Access:
    where = kubeconfig.KubeconfigCluster(server=server or cluster.server, certificate_authority=str(cluster.ca or ""))
    return Access(ResolvedContext("", where, KubeconfigUser(token=cluster.tokens["admin"]), "default"), environ={})


def make_pod(cluster: Cluster, namespace: str, name: str, **more: Any) -> PodRef:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "nobody", **more}
    made = cluster.api().must(
        "POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": spec}
    )
    return PodRef(namespace, name, made["metadata"]["uid"])


def pod_now(cluster: Cluster, ref: PodRef) -> Any:
    return cluster.api().must("GET", f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}")


def delete_pod(cluster: Cluster, ref: PodRef) -> None:
    cluster.api().must("DELETE", f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}?gracePeriodSeconds=0")


class RecordingSink:
    """The pods of one namespace as a sink received them; a change that is sent twice is an error."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.there: dict[str, Object] = {}
        self.changes: list[str] = []

    def __call__(self, changes: list[Change]) -> None:
        for change in changes:
            found = change.object
            if found.namespace != self._namespace:
                continue
            if isinstance(change, Put):
                known = self.there.get(found.uid)
                assert known is None or known.metadata.resource_version != found.metadata.resource_version
                self.there[found.uid] = found
            else:
                assert self.there.pop(found.uid, None) is not None
            self.changes.append(f"{'+' if isinstance(change, Put) else '-'}{found.name}")

    @property
    def names(self) -> list[str]:
        return sorted(found.name for found in self.there.values())

    def has(self, name: str) -> bool:
        return name in self.names


@asynccontextmanager
async def reflecting(client: Client, resource: ApiResource, sink: Any, **options: Any) -> AsyncIterator[Reflector]:
    reflector = Reflector(client, resource, sink, **options)
    task = asyncio.create_task(reflector.run())
    async with asyncio.timeout(60):
        await reflector.synced.wait()
    yield reflector
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

"""One cluster that may have the workload: what would have to be written there, and the writes.

A plan is made from what the cluster has: objects with our label are listed, and objects that are missing are read by
name, since somebody else may have made them. Such an object is left alone (unless it is to be adopted), and an error
says so; a Namespace that exists is used as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from stowplan.apps.place.follow import manifest
from stowplan.apps.place.follow.manifest import Document
from stowplan.kube.client import Client
from stowplan.kube.discovery import Discovery
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import RefusedError, Response
from stowplan.objects.errors import StowplanError
from stowplan.objects.kinds import decode_plain

KindAndNamespace: TypeAlias = tuple[str, str, str]  # apiVersion, kind, and the namespace of the manifest or ""


class WorkloadWrite(msgspec.Struct, frozen=True):
    """`does`: create, patch or delete. `body` is the object, the patch, or the options of the deletion."""

    does: str
    api_version: str
    kind: str
    key: str
    body: Document
    version: str = ""  # the resource version of the object that is patched

    def __str__(self) -> str:
        return f"{self.does} {self.kind} {self.key} ({self.api_version})"


class MemberCluster:
    """`follower`: the value of our label. `namespace`: of objects that name none. `on_write` gets every change made."""

    def __init__(
        self,
        client: Client,
        follower: str,
        namespace: str,
        *,
        adopt: bool = False,
        on_write: Callable[[WorkloadWrite], None] = lambda _: None,
    ) -> None:
        self._client, self._follower, self._namespace = client, follower, namespace
        self._adopt, self._on_write = adopt, on_write
        self._discovery = Discovery(client)

    async def plan(self, wanted: Iterable[Document], kinds: Iterable[KindAndNamespace]) -> list[WorkloadWrite]:
        """Return the writes after which the cluster has these objects, and no other of ours of these kinds.

        A Namespace or definition that the manifest has lost stays as long as anything is wanted in the cluster: to
        delete it would delete what is in it.
        """
        ours, wanted = await self._ours(kinds), tuple(wanted)
        writes = [write for each in wanted if (write := await self._write_for(each, ours)) is not None]
        left = [
            (identity, live)
            for identity, live in ours.items()
            if not live["metadata"].get("deletionTimestamp") and not (wanted and identity[1] in manifest.FIRST)
        ]
        return writes + [self._deletion(*found) for found in reversed(left)]

    async def settle(self, wanted: Iterable[Document], kinds: Iterable[KindAndNamespace]) -> None:
        """Carry the plan out. Raises StowplanError if a part of it failed; the other parts are carried out."""
        problems = []
        for write in await self.plan(wanted, kinds):
            try:
                await self._perform(write)
            except RefusedError as error:
                problems.append(str(error))
        if problems:
            raise StowplanError("; ".join(problems))

    # -- what is there

    async def _ours(self, kinds: Iterable[KindAndNamespace]) -> dict[tuple[str, str, str], Document]:
        """Return our objects by apiVersion, kind and key, in the order of the kinds."""
        found: dict[tuple[str, str, str], Document] = {}
        for version, kind, namespace in kinds:
            resource = await self._discovery.resource(version, kind)
            if resource is None:
                continue
            within = (namespace or self._namespace) if resource.namespaced else ""
            labels = manifest.selector(self._follower)
            try:
                async for page in self._client.list_pages(resource, namespace=within, labels=labels):
                    for item in page.items or ():
                        live: Document = decode_plain(bytes(item))
                        live |= {"apiVersion": version, "kind": kind}  # a list's items do not name them
                        found[version, kind, _key(live["metadata"])] = live
            except RefusedError as error:
                self._discovery.forget()
                if error.status != 404:
                    raise
        return found

    async def _write_for(self, document: Document, ours: dict[tuple[str, str, str], Document]) -> WorkloadWrite | None:
        version, kind = document["apiVersion"], document["kind"]
        resource = await self._discovery.resource(version, kind)
        if resource is None:  # its definition may be one of the objects before it
            return WorkloadWrite("create", version, kind, _key(document["metadata"]), document)
        within = document["metadata"].get("namespace", self._namespace) if resource.namespaced else ""
        wanted = manifest.marked(document, self._follower, within)
        key = _key(wanted["metadata"])
        live = ours.pop((version, kind, key), None) or await self._read(resource, key)
        if live is None:
            return WorkloadWrite("create", version, kind, key, wanted)
        if not manifest.is_ours(live, self._follower) and not self._adopt:
            if kind == "Namespace":
                return None
            remedy = "delete it there, rename it in the manifest, or give --adopt"
            raise StowplanError(f"{kind} {key} exists, and this follower did not make it; {remedy}")
        if live["metadata"].get("deletionTimestamp"):
            raise StowplanError(f"{kind} {key} is being deleted; it is created again when it is gone")
        body = manifest.patch_for(live, wanted)
        old = live["metadata"].get("resourceVersion", "")
        return None if body is None else WorkloadWrite("patch", version, kind, key, body, old)

    async def _read(self, resource: ApiResource, key: str) -> Document | None:
        answer = await self._client.get(resource, key)
        if answer.status == 404:
            return None
        found: Document = decode_plain(answer.checked(f"get {resource.kind} {key}").body)
        return found

    @staticmethod
    def _deletion(identity: tuple[str, str, str], live: Document) -> WorkloadWrite:
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": live["metadata"]["uid"]},
        }
        return WorkloadWrite("delete", *identity, options)

    # -- writing

    async def _perform(self, write: WorkloadWrite) -> None:
        resource = await self._discovery.resource(write.api_version, write.kind)
        if resource is None:
            raise RefusedError(f"{write}", 404, "the cluster does not serve this kind (yet)")
        answer = await self._send(write, resource)
        if write.does == "delete" and answer.status == 404:
            return
        answer.checked(str(write))
        if write.does != "patch" or decode_plain(answer.body)["metadata"]["resourceVersion"] != write.version:
            self._on_write(write)

    async def _send(self, write: WorkloadWrite, resource: ApiResource) -> Response:
        if write.does == "patch":
            return await self._client.patch(resource, write.key, write.body)
        if write.does == "delete":
            body = msgspec.json.encode(write.body)
            return await self._client.transport.request("DELETE", resource.path(write.key), body=body)
        body_of: Document = write.body
        if not manifest.is_ours(body_of, self._follower):  # the kind was not served when the plan was made
            within = body_of["metadata"].get("namespace", self._namespace) if resource.namespaced else ""
            body_of = manifest.marked(body_of, self._follower, within)
        return await self._client.create(resource, body_of["metadata"].get("namespace", ""), body_of)


def _key(metadata: dict[str, Any]) -> str:
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    return f"{namespace}/{name}" if namespace else str(name)

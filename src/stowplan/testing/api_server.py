"""A fake API server: objects in memory, and the effect of each action of the scheduler on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from stowplan.engine.pods import assumed
from stowplan.objects import kinds
from stowplan.objects.actions import (
    Action,
    AllocateClaims,
    Ask,
    Bind,
    Create,
    DeallocateClaim,
    Delete,
    Evict,
    Nominate,
    Patch,
    Read,
    ReadObject,
    Record,
    ReleaseClaims,
    RequestEviction,
    SetCondition,
)
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.meta import Object
from stowplan.objects.pod_parts import PodCondition
from stowplan.objects.pods import Pod
from stowplan.testing import patching
from stowplan.testing.claim_writes import ClaimWrites

START = datetime(2026, 1, 1, tzinfo=UTC)  # what the clock shows when a world's time is 0


class FakeApiServer:
    """Performs actions, and reports each change of an object to `on_change`, each binding to `on_bind`, and each pod
    that is read to `on_read`.

    `graceful`: an evicted pod is terminating until a test deletes it. `kubelets`: a pod that is bound has a start time.
    `own_types`: the types of kinds that plugins bring, by name.
    """

    def __init__(
        self,
        *,
        on_change: Callable[[Put | Gone], None],
        on_bind: Callable[[Pod, str], None],
        on_read: Callable[[Pod], None],
        graceful: bool = False,
        kubelets: bool = False,
        own_types: Mapping[str, type[Object]] | None = None,
    ) -> None:
        self._own_types = own_types or {}
        self.objects: dict[tuple[str, str], Object] = {}  # by kind and key
        self.events: list[Record] = []
        self.bound: list[str] = []
        self.graceful, self.kubelets = graceful, kubelets
        self._on_change, self._on_bind, self._on_read = on_change, on_bind, on_read
        self._version = 0
        self._claims = ClaimWrites(self.objects, self.put, self.remove)

    def put(self, found: Object) -> None:
        """Create or replace an object. Kinds that plugins patch get a new resource version."""
        self._version += 1
        found = patching.versioned(found, self._version)
        self.objects[type(found).__name__, found.key] = found
        self._on_change(Put(found))

    def remove(self, found: Object) -> None:
        """Delete an object, if it exists."""
        existing = self.objects.pop((type(found).__name__, found.key), None)
        if existing is not None:
            self._on_change(Gone(existing))

    def perform(self, action: Action, now: float) -> Result:
        """Do what the action asks for, and return the server's answer."""
        match action:
            case Record():
                self.events.append(action)
                return Result(action.id)
            case Patch():
                return self._patch(action)
            case Create():
                return self._create(action)
            case Delete():
                return self._delete(action)
            case AllocateClaims() | DeallocateClaim() | ReleaseClaims():
                return self._claims.perform(action, START + timedelta(seconds=int(now)))
            case ReadObject():
                return Result(action.id) if (action.kind, action.key) in self.objects else Result(action.id, 404)
        pod = self.objects.get(("Pod", f"{action.pod.namespace}/{action.pod.name}"))
        if not isinstance(pod, Pod) or pod.uid != action.pod.uid:
            return Result(action.id, 404, "not found")
        match action:
            case Bind():
                return self._bind(action, pod, action.node_name, now)
            case Ask():
                return self._bind(action, pod, action.nodes[0], now)
            case Evict() | RequestEviction() if self.graceful:
                self.put(_terminating(pod))
            case Evict() | RequestEviction():
                self.remove(pod)
            case SetCondition():
                condition = PodCondition("PodScheduled", action.status, action.reason, action.message)
                nominated = pod.nominated_node if action.nominated_node is None else action.nominated_node
                self.put(_with_status(pod, conditions=(condition,), nominated_node_name=nominated))
            case Nominate():
                self.put(_with_status(pod, nominated_node_name=action.node_name))
            case Read():
                self._on_read(pod)
        return Result(action.id)

    def _bind(self, action: Bind | Ask, pod: Pod, node_name: str, now: float) -> Result:
        if pod.node_name or pod.terminating:
            return Result(action.id, 409, "already bound, or terminating")
        self.bound.append(pod.uid)
        started = START + timedelta(seconds=int(now)) if self.kubelets else pod.status.start_time
        bound = assumed(_with_status(pod, nominated_node_name="", start_time=started), node_name)
        if isinstance(action, Bind) and action.annotations:
            annotations = {**bound.annotations, **action.annotations}
            metadata = msgspec.structs.replace(bound.metadata, annotations=annotations)
            bound = msgspec.structs.replace(bound, metadata=metadata)
        self.put(bound)
        self._on_bind(pod, node_name)
        return Result(action.id)

    def _patch(self, action: Patch) -> Result:
        existing = self.objects.get((action.kind, action.key))
        if existing is None:  # a merge patch succeeds even so: tests need not create what their plugins patch
            return Result(action.id, 404, "not found") if isinstance(action.body, list) else Result(action.id)
        patched = patching.patched(existing, action.body)
        if patched is None:
            return Result(action.id, 409, "the object has been modified")
        self.put(patched)
        return Result(action.id)

    def _create(self, action: Create) -> Result:
        if (action.kind, action.key) in self.objects:
            return Result(action.id, 409, "already exists")
        made = kinds.convert({**kinds.KINDS, **self._own_types}[action.kind], action.body)
        metadata = msgspec.structs.replace(made.metadata, uid=f"uid-{self._version}-of-{action.key}")
        self.put(msgspec.structs.replace(made, metadata=metadata))
        return Result(action.id, 201)

    def _delete(self, action: Delete) -> Result:
        existing = self.objects.get((action.kind, action.key))
        if existing is None:
            return Result(action.id, 404, "not found")
        if (existing.uid, existing.metadata.resource_version) != (action.uid, action.resource_version):
            return Result(action.id, 409, "the object has been modified")
        self.remove(existing)
        return Result(action.id)


def _terminating(pod: Pod) -> Pod:
    disrupted = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=START)
    marked = _with_status(pod, conditions=(*pod.status.conditions, disrupted))
    return msgspec.structs.replace(marked, metadata=metadata)


def _with_status(pod: Pod, **fields: Any) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **fields))

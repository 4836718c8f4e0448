"""A scheduler whose actions succeed at once: pods arrive, are bound or not, and leave. Nothing takes time.

The engine is the one that `stowplan run` runs. Actions are answered as an API server would that refuses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.framework.ranking import Draw
from stowplan.objects.actions import Action, Bind
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod


class InstantCluster:
    """`draw` decides between equally good nodes. `now` is the virtual clock, in seconds; the caller moves it."""

    def __init__(self, profiles: Mapping[str, Profile], draw: Draw) -> None:
        self.scheduler = Scheduler(profiles, draw)
        self.now = 0.0

    def put(self, found: Node | Object) -> None:
        """Create or change an object that is not a pod."""
        self._answer(self.scheduler.handle(Put(found), self.now))

    def remove(self, found: Object) -> None:
        self._answer(self.scheduler.handle(Gone(found), self.now))

    def arrive(self, pod: Pod) -> str | None:
        """Let a pod arrive, and the scheduler attempt it once. Return its node; None if it waits."""
        self._answer(self.scheduler.handle(Put(pod), self.now))
        return self._answer(self.scheduler.step(self.now)).get(pod.uid)

    def _answer(self, actions: list[Action]) -> dict[str, str]:
        """Answer actions, and those that follow. Return the nodes of the pods that were bound, by uid."""
        bound: dict[str, str] = {}
        waiting = list(actions)
        while waiting:
            action = waiting.pop(0)
            if isinstance(action, Bind):
                bound[action.pod.uid] = action.node_name
                waiting += self.scheduler.handle(Put(self._bound(action)), self.now)
            waiting += self.scheduler.handle(Result(action.id, 201), self.now)
        return bound

    def _bound(self, action: Bind) -> Pod:
        """The pod as the API server shows it from now on."""
        pod = self.scheduler.pods[action.pod.uid]
        metadata, shape = pod.metadata, pod.shape
        if action.annotations:
            annotations = {**metadata.annotations, **action.annotations}
            metadata = msgspec.structs.replace(metadata, annotations=annotations)
        spec = msgspec.structs.replace(pod.spec, node_name=action.node_name)
        bound = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
        vars(bound)["shape"] = shape  # neither its node nor its GPUs are a part of it
        return bound

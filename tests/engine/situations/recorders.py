"""Helpers of the situations: plugins that record their calls, a slow API server, and where a pod is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.framework.interfaces import Wake
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.actions import Action
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_profile
from stowplan.testing.world import World

LOW, MEDIUM, HIGH = 100, 200, 300  # priorities


def uid(name: str) -> str:
    """Return the uid that the builders give a pod."""
    return f"uid-of-default-{name}"


def where(world: World, name: str) -> QueueStage | BindStep | str:
    """Return the pod's stage in the queue, its binding step, or its node's name; empty for a deleted pod."""
    for unit in world.scheduler.queue.units.values():
        if uid(name) in unit.pods:
            return unit.stage
    placing = world.scheduler.assumed_pods.get(uid(name))
    return placing.step if placing is not None else world.bindings.get(name, "")


def attempts(world: World, name: str) -> int:
    """Return how often the pod was attempted."""
    return world.scheduler.queue.units[uid(name)].attempts


def rejectors(world: World, name: str) -> set[str]:
    return set(world.scheduler.queue.units[uid(name)].queued.rejectors)


def reason(world: World, name: str) -> str:
    """Return the reason in the pod's condition: Unschedulable, SchedulerError, or nothing."""
    condition = world.pod(name).condition("PodScheduled")
    return "" if condition is None else condition.reason


def of(world: World, kind: type[Action]) -> list[Any]:
    return [action for action in world.actions if isinstance(action, kind)]


def changed(pod: Pod, **metadata: Any) -> Pod:
    """Return the pod with other metadata."""
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **metadata))


class Held:
    """Actions that the API server has received and does not perform until `let_go`."""

    def __init__(self, world: World, *kinds: type[Action], pods: Iterable[str] = ()) -> None:
        """`pods`: hold only actions about these; without them, about any pod."""
        self._world, self._kinds, self._pods, self._others = world, kinds, frozenset(pods), world.answers
        self.actions: list[Any] = []
        world.answers = self._answer

    def _answer(self, action: Action) -> Result | None:
        pod = getattr(action, "pod", None)
        if isinstance(action, self._kinds) and (not self._pods or (pod is not None and pod.name in self._pods)):
            self.actions.append(action)
            return None
        return self._others(action)

    def let_go(self, count: int | None = None) -> None:
        """Perform and answer all held actions, or the first so many, in their order."""
        chosen = self.actions[:count]
        del self.actions[:count]
        for action in chosen:
            self._world.complete(action)

    def names(self) -> list[str]:
        return [action.pod.name for action in self.actions]


class Asked:
    """A plugin for any extension point that records its calls, and gives the answers of a test.

    An answer is a value, an exception to be raised, or a function of the call's arguments. Without `wakes`, any event
    requeues a pod that the plugin rejected.
    """

    writes: ClassVar = {"ConfigMap": ("patch",), "PersistentVolumeClaim": ("patch",)}

    def __init__(
        self, name: str = "Asked", log: list[str] | None = None, wakes: Iterable[Wake] | None = None, **answers: Any
    ) -> None:
        self.name, self.answers = name, answers
        self.log = [] if log is None else log  # "point pod", or with a log shared by plugins "plugin point"
        self._shared = log is not None
        if wakes is not None:
            self.wakes_on = lambda: tuple(wakes)

    def _say(self, point: str, pod: Pod, *rest: Any) -> Any:
        self.log.append(f"{self.name} {point}" if self._shared else f"{point} {pod.name}")
        answer = self.answers.get(point)
        if isinstance(answer, Exception):
            raise answer
        return answer(pod, *rest) if callable(answer) else answer

    def count(self, point: str, pod: str = "") -> int:
        return sum(said.startswith(f"{point} {pod}") for said in self.log)

    def pre_enqueue(self, *asked: Any) -> Any:
        return self._say("pre_enqueue", *asked)

    def pre_filter(self, *asked: Any) -> Any:
        return self._say("pre_filter", *asked)

    def filter(self, *asked: Any) -> Any:
        return self._say("filter", *asked) or ()

    def post_filter(self, *asked: Any) -> Any:
        return self._say("post_filter", *asked)

    def score(self, *asked: Any) -> Any:
        return self._say("score", *asked)

    def reserve(self, *asked: Any) -> Any:
        return self._say("reserve", *asked)

    def unreserve(self, *asked: Any) -> Any:
        return self._say("unreserve", *asked)

    def permit(self, *asked: Any) -> Any:
        return self._say("permit", *asked)

    def pre_bind(self, *asked: Any) -> Any:
        return self._say("pre_bind", *asked) or ()

    def bind(self, *asked: Any) -> Any:
        return self._say("bind", *asked)

    def post_bind(self, *asked: Any) -> Any:
        return self._say("post_bind", *asked) or ()


def only(profile: Profile | None = None, /, **at: Iterable[Any]) -> dict[str, Profile]:
    """Return the default profile with only these plugins at some points."""
    default = profile or a_profile()
    replaced = {
        point: tuple(EnabledPlugin(getattr(each, "name", type(each).__name__), each, 1) for each in plugins)
        for point, plugins in at.items()
    }
    return {"default-scheduler": Profile("default-scheduler", {**default.points, **replaced})}

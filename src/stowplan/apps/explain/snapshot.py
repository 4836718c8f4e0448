"""A cluster from a set of objects, and explanations of the pods in it. The scheduler's engine itself answers."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from stowplan.engine.explain import Explanation, GroupExplanation
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pod_parts import PodStatus
from stowplan.objects.pods import Pod

__all__ = ["Explanation", "GroupExplanation", "Snapshot"]


class Snapshot:
    def __init__(self, objects: Iterable[Object], profiles: dict[str, Profile]) -> None:
        self.pods, self.profiles = dict[str, Pod](), profiles
        self._scheduler = Scheduler(profiles, np.random.default_rng(0))
        pods: list[Pod] = []
        for each in map(_with_uid, objects):
            if isinstance(each, Pod):
                pods.append(each)
            else:
                self._scheduler.handle(Put(each), 0.0)
        for pod in pods:  # last, since what the others say decides about them
            self.pods[pod.key] = pod
            self._scheduler.handle(Put(pod), 0.0)
        self.state = self._scheduler.state
        self._answers: dict[str, Explanation] = {}

    def pod(self, key: str) -> Pod:
        if key not in self.pods:
            raise ConfigError(f"there is no pod {key}", remedy="name it as it is, and its namespace by -n")
        return self.pods[key]

    def answer(self, pod: Pod) -> Explanation:
        """Where the pod would go now; with its group, if it waits with one."""
        if pod.scheduler_name not in self.profiles:
            problem = f"{pod.key} has schedulerName {pod.scheduler_name}, of which there is no profile"
            remedy = f"there is {', '.join(self.profiles)}; name that scheduler's configuration by --config"
            raise ConfigError(problem, remedy=remedy)
        if pod.uid not in self._scheduler.pods:
            self._scheduler.handle(Put(_unfinished(pod)), 0.0)
        if pod.uid not in self._answers:
            self._answers |= self._scheduler.explain_all([pod.uid])
        return self._answers[pod.uid]


def _unfinished(pod: Pod) -> Pod:
    """A finished pod as if it had to run again: the scheduler forgets finished pods."""
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, node_name=""), status=PodStatus()
    )  # fmt: skip


def _with_uid(found: Object) -> Object:
    """Pods are told apart by their uids, and a pod written by hand has none."""
    if not isinstance(found, Pod) or found.uid:
        return found
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid=found.key))

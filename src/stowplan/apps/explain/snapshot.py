"""A cluster made of some objects, with an engine that explains the pods in it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from stowplan.engine.explain import Explanation
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod


class Snapshot:
    def __init__(self, objects: Iterable[Object], profiles: dict[str, Profile]) -> None:
        self.profiles = profiles
        self._scheduler = Scheduler(profiles, np.random.default_rng(0))
        pods: list[Pod] = []
        for each in map(_with_uid, objects):
            if isinstance(each, Pod):
                pods.append(each)
            else:
                self._scheduler.handle(Put(each), 0.0)
        # Pods are last: the engine reads the other objects when a pod arrives. Pods with a node come before the others:
        # what is nominated for a group depends on its bound members.
        for pod in sorted(pods, key=lambda each: not each.node_name):
            self._scheduler.handle(Put(pod), 0.0)
        self.pods = {pod.key: pod for pod in pods}
        self.state = self._scheduler.state
        self._answers: dict[str, Explanation] = {}

    def pod(self, key: str) -> Pod:
        if key not in self.pods:
            raise ConfigError(f"there is no pod {key}", remedy="check its name, and name its namespace with -n")
        return self.pods[key]

    def answer(self, pod: Pod) -> Explanation:
        """Explain a pod; a pending pod of a group together with its group."""
        if pod.scheduler_name not in self.profiles:
            problem = f"{pod.key} has schedulerName {pod.scheduler_name}, which has no profile"
            remedy = f"profiles: {', '.join(self.profiles)}; name that scheduler's configuration with --config"
            raise ConfigError(problem, remedy=remedy)
        if pod.uid not in self._scheduler.pods:
            return self._scheduler.explain_pod(pod)
        if pod.uid not in self._answers:
            self._answers |= self._scheduler.explain_all([pod.uid])
        return self._answers[pod.uid]


def _with_uid(found: Object) -> Object:
    """Return the object with a uid: the engine knows pods by uid, and a pod in a file may have none."""
    if not isinstance(found, Pod) or found.uid:
        return found
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid=found.key))

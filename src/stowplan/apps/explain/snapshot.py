"""A cluster made of some objects, with an engine that explains and diagnoses the pods in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from stowplan.diagnosis.any_pod import diagnose_any
from stowplan.diagnosis.causes import cause_groups, pod_causes
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.groups.diagnosis import GroupDiagnosis
from stowplan.diagnosis.rejections import rejections
from stowplan.diagnosis.search import POOL_LABEL
from stowplan.engine.explain import Explanation
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod


class Snapshot:
    def __init__(self, objects: Iterable[Object], profiles: dict[str, Profile], now: float = 0.0) -> None:
        """`now`: seconds since the epoch, to be compared with times in objects."""
        self.profiles = profiles
        self.engine = Scheduler(profiles, np.random.default_rng(0), clock_began=now)
        pods: list[Pod] = []
        self.objects: dict[tuple[str, str], Object] = {}
        for each in map(_with_uid, objects):
            self.objects[type(each).__name__, each.key] = each
            if isinstance(each, Pod):
                pods.append(each)
            else:
                self.engine.handle(Put(each), 0.0)
        # Pods are last: the engine reads the other objects when a pod arrives. Pods with a node come before the others:
        # what is nominated for a group depends on its bound members.
        for pod in sorted(pods, key=lambda each: not each.node_name):
            self.engine.handle(Put(pod), 0.0)
        self.pods = {pod.key: pod for pod in pods}
        self.state = self.engine.state
        self._answers: dict[str, Explanation] = {}
        self._groups: dict[str, GroupDiagnosis] = {}

    def put(self, found: Object) -> Object:
        """Take in an object that does not exist yet, or a new version of it."""
        found = _with_uid(found)
        self.objects[type(found).__name__, found.key] = found
        if isinstance(found, Pod):
            self.pods[found.key] = found
        self.engine.handle(Put(found), 0.0)
        self._answers.clear()
        self._groups.clear()
        return found

    def forget(self, found: Object) -> None:
        """The object is gone from the cluster."""
        self.objects.pop((type(found).__name__, found.key), None)
        if isinstance(found, Pod):
            self.remove(found)
            return
        self.engine.handle(Gone(found), 0.0)
        self._answers.clear()
        self._groups.clear()

    def place(self, pod: Pod, node: str) -> None:
        """From now on the pod is on this node."""
        self.put(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node)))

    def remove(self, pod: Pod) -> None:
        self.engine.handle(Gone(pod), 0.0)
        self.pods.pop(pod.key, None)
        self._answers.clear()
        self._groups.clear()

    def in_group(self, pod: Pod) -> str:
        """Return the name of the group that a pending pod waits with; empty if it has none."""
        unit = self.engine.queue.find(pod.uid)
        return unit.group if unit is not None else ""

    def answer(self, pod: Pod) -> Explanation:
        """Explain a pod; a pending pod of a group together with its group."""
        if pod.uid not in self.engine.pods:
            return self.engine.explain_pod(pod)
        if pod.uid not in self._answers:
            self._answers |= self.engine.explain_all([pod.uid])
        return self._answers[pod.uid]

    def diagnose(
        self,
        pod: Pod,
        *,
        templates: Mapping[str, Node] | None = None,
        pool_label: str = POOL_LABEL,
        served: Mapping[str, Profile] | None = None,
        with_remedies: bool = True,
    ) -> Diagnosis:
        """Say what keeps a pending pod from a node, and what would help. `served`: profiles that it could ask for."""
        profile = self.profiles[pod.scheduler_name]
        if not with_remedies:
            found = rejections(pod, self.state, profile)
            own = pod_causes(pod, found, self.state, profile)
            return Diagnosis(own, cause_groups(pod, found, self.state, profile))
        return diagnose_any(
            self.engine, pod, profiles=served or {}, templates=templates, pool_label=pool_label, groups=self._groups
        )


def _with_uid(found: Object) -> Object:
    """Return the object with a uid: the engine knows pods by uid, and a pod in a file may have none."""
    if not isinstance(found, Pod) or found.uid:
        return found
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid=found.key))

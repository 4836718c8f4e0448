"""Nominated nodes: which pod waits for room on which node.

The cluster state counts a nominated pod on its node for pods of equal or lower priority. A nomination is made here
before the API server knows it, and follows what the pod's status says. The companions of a pod (pods that do not exist
yet) are known here only: after a restart the pod is attempted first, and its companions are found again. Room is kept
for companions for some minutes only: a victim may hang in its termination for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

from stowplan.columns.pods.nominated_pods import Companions
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.queue.cluster_events import pod_left
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.unit import Unit
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod

LONGEST_FOR_COMPANIONS = 600.0  # seconds


class Nominations:
    def __init__(
        self, profiles: Mapping[str, Profile], state: ClusterState, groups: Groups, queue: SchedulingQueue
    ) -> None:
        self._profiles, self._state, self._groups, self._queue = profiles, state, groups, queue
        self._kept_since: dict[str, float] = {}  # when room was first kept for companions, by the pod's uid

    def nominate(self, pod: Pod, node_name: str, companions: Companions = ()) -> None:
        """Keep room on a node for a pod, against all pods of equal or lower priority.

        Room for the missing members of a partially bound group is also kept against pods of higher priority, unless
        they could evict the group's other members.
        """
        found = self._groups.of(pod.uid)
        firm = found is not None and found.partially_bound
        self._state.nominated_pods.add(pod, node_name, firm=firm, companions=companions)

    def replace(self, pod: Pod, node_name: str, now: float, companions: Companions | None = None) -> None:
        """Nominate another node; "" for none. `companions` None: the same ones, if the node is the same."""
        nominated = self._state.nominated_pods
        if companions is None:
            companions = nominated.companions_of(pod.uid) if node_name == nominated.node_of(pod.uid) else ()
        if companions and now - self._kept_since.setdefault(pod.uid, now) > LONGEST_FOR_COMPANIONS:
            companions = ()
        freed = nominated.drop(pod.uid)
        if node_name:
            self.nominate(pod, node_name, companions)
        if freed and (not node_name or freed != companions):
            companions_left(freed, self._queue, now, except_unit=self._queue.find(pod.uid))

    def end(self, uid: str) -> Companions:
        """The pod has a node, or is gone. Return its companions, whose room is free now."""
        self._kept_since.pop(uid, None)
        return self._state.nominated_pods.drop(uid)

    def pending_pod_changed(self, old: Pod | None, pod: Pod, now: float) -> None:
        """Follow the status of a pod without a node. A nomination that is not written yet stands until then."""
        current = self._state.nominated_pods.node_of(pod.uid)
        if not pod.nominated_node and not current:
            return
        before = "" if old is None else old.nominated_node
        node_name = current if pod.nominated_node == before else pod.nominated_node
        self.replace(pod, "" if pod.terminating else node_name, now)

    def withdrawn(self, old: Pod, new: Pod | None, now: float) -> None:
        """If a pod lost its nomination, other pods see that as if the pod had left the node.

        `new` is None for a pod that is gone. A nomination keeps out pods of equal or lower priority; a
        partially bound group's also keeps out others.
        """
        if not old.nominated_node or old.node_name:
            return
        if new is None or (not new.node_name and new.nominated_node != old.nominated_node):
            profile = self._profiles.get(old.scheduler_name)
            grouped = profile is not None and bool(profile.group_plugins)
            self._queue.events(
                [pod_left(old, old.nominated_node)],
                now,
                max_priority=None if grouped else old.priority,
                except_unit=self._queue.find(old.uid),
            )


def companions_left(freed: Companions, queue: SchedulingQueue, now: float, except_unit: Unit | None = None) -> None:
    """Room is no longer kept for these companions. Other pods see that as if they had left their nodes."""
    for pod, node_name in freed:
        queue.events([pod_left(pod, node_name)], now, except_unit=except_unit)

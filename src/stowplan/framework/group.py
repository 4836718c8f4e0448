"""What a plugin says about a group of pods."""

from __future__ import annotations

from datetime import datetime

import msgspec

from stowplan.objects.actions import ObjectRef
from stowplan.objects.pods import Pod

TIMEOUT = 10.0  # seconds
UNKNOWN = 1 << 30  # the minimum of a group whose real minimum is not known yet
ONE_BY_ONE, ALL_TOGETHER = "Pod", "PodGroup"  # how members of a group may be disrupted


class SlotPods(msgspec.Struct, frozen=True):
    """The pods that a pod needs besides itself and that do not exist yet: a pod like each of them, and how many."""

    example: Pod
    number: int


class Group(msgspec.Struct, frozen=True):
    """Pods that are attempted and bound as one: the group's name, and how many members must have a node (`minimum`).

        def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:
            return Group(f"{pod.namespace}/{pod.labels['job']}", minimum=4) if "job" in pod.labels else None

    If an object defines the group, the name is that object's key, and a change of the object updates the group.

    slots       slots that are held for members which do not exist yet; they count as members with a node
    timeout     seconds from the decision until all members must be ready to be bound
    match       which members count: "waiting-and-running", "only-waiting", or "once-satisfied": once the group had
                enough members, further members are scheduled one by one
    evicts      if the group stays partially bound, all its members are evicted; else the missing members go first
    report_after  seconds after which a partially bound group gets an event that lists its members
    preempts    pods of lower priority may be evicted, if the whole group fits then
    resources   amounts that must be free in the cluster, those of its own members included, before an attempt
    created     when the group's own object was created, if it has one
    advice      what would help a group that waits for members
    priority    by which it preempts, and is preempted as a whole; its members may then have different priorities
                (None: it has that of its members, which must be the same)
    disruption  which members are preempted with one of them: "" the others, if they are fewer than the minimum then;
                "Pod" none; "PodGroup" all
    own_object  internal: the object that defines it, as events name it
    """

    name: str
    minimum: int
    slots: int = 0
    timeout: float = TIMEOUT
    match: str = "waiting-and-running"
    evicts: bool = False
    report_after: float = 60.0
    preempts: bool = True
    resources: dict[str, int] = {}
    created: datetime | None = None
    advice: str = ""
    priority: int | None = None
    disruption: str = ""
    own_object: ObjectRef | None = None

"""Give each team's next pod another node than the team's last pod: arguments, and state for three lengths of time."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from stowplan.plugin import SKIP, Cluster, ConfigError, Ints, Nodes, Pod, Reject, Skip, Wake

REMEMBERED = 100  # pods of a team: more than are being bound at one time


class Rotation:
    """`label`: the label that names the team. `mode`: "prefer" scores nodes, "require" rejects the last one."""

    def __init__(self, label: str = "team", mode: Literal["prefer", "require"] = "prefer") -> None:
        if not label:
            raise ConfigError("label is empty", remedy="name the label of your teams")
        self.label, self.mode = label, mode
        self._recent: dict[str, dict[str, str]] = {}  # while the process runs: by team, the nodes of its pods by uid

    # -- for one decision: what `pre_filter` finds out, `filter` and `score` use

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:
        team = pod.labels.get(self.label)
        if team is None:
            return SKIP  # `filter` has nothing to do for this pod
        recent = self._recent.get(team, {})
        cluster.notes["Rotation"] = next(reversed(recent.values()), "") or self._newest(team, cluster)
        return None

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:  # noqa: ARG002
        last = nodes.cluster.notes.get("Rotation")
        if last and self.mode == "require":
            yield Reject(nodes.name == last, "node(s) had the team's last pod", resolvable=False)

    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:  # noqa: ARG002
        last = nodes.cluster.notes.get("Rotation")
        return np.where(nodes.name == last, 0, 100) if last and self.mode == "prefer" else None

    # -- while the process runs: changed when a pod gets a node, undone if the binding fails. Bindings overlap: the next
    # pod is decided before the last one is bound. So the pods are remembered one by one, and the latest counts.

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        team = pod.labels.get(self.label)
        if team is not None:
            recent = self._recent.setdefault(team, {})
            recent[pod.uid] = node_name
            if len(recent) > REMEMBERED:
                del recent[next(iter(recent))]  # the oldest

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        self._recent.get(pod.labels.get(self.label, ""), {}).pop(pod.uid, None)

    # -- after a restart: nothing is remembered, so look at the pods

    def _newest(self, team: str, cluster: Cluster) -> str:
        """The node of the team's newest pod that has one; "" if there is none."""
        pods = [pod for pod in cluster.known_pods() if pod.labels.get(self.label) == team and pod.node_name]
        newest = max(pods, key=lambda pod: (str(pod.metadata.creation_timestamp), pod.name), default=None)
        return "" if newest is None else newest.node_name

    # -- which events may help a pod that was rejected

    def wakes_on(self) -> Iterator[Wake]:
        yield Wake("Node", ("Add",))
        yield Wake("AssignedPod", ("Add", "Delete"))

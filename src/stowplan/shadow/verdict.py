"""What is said of one decision of the running scheduler.

same            its node is the only one that is best for us, too; or neither found a node
tie             its node is one of several that are best
race            its node was best in a cluster that differs by a change of the same moment, which is named
sampled         its node is best among the nodes that it may have looked at: it does not look at all of a large cluster
different       another node is better for us, or its node has no room by our rules
pending-there   it leaves the pod without a node, and we have one
pending-here    it has a node for the pod, and we have none
"""

from __future__ import annotations

from dataclasses import dataclass

SAME, TIE, RACE, SAMPLED = "same", "tie", "race", "sampled"
DIFFERENT, PENDING_THERE, PENDING_HERE = "different", "pending-there", "pending-here"
KINDS = (SAME, TIE, RACE, SAMPLED, DIFFERENT, PENDING_THERE, PENDING_HERE)
DIFFERENCES = (DIFFERENT, PENDING_THERE, PENDING_HERE)  # what no tie, no race and no sample explains


@dataclass(frozen=True, slots=True)
class PluginScore:
    """A plugin's score of their node and of ours, before weighting. None: the node is not feasible."""

    plugin: str
    weight: int
    there: int | None
    here: int


@dataclass(frozen=True, slots=True)
class ShadowVerdict:
    """`there`: their node, empty for none; `here`: the first of our best nodes; `ties`: how many there are.

    `at`: when the decision was seen, by the caller's clock. `because`: the changes that explain a race.
    """

    kind: str
    pod: str
    uid: str
    scheduler: str
    at: float
    there: str
    here: str
    ties: int
    explanation: str
    because: tuple[str, ...] = ()
    total_there: int | None = None
    total_here: int | None = None
    scores: tuple[PluginScore, ...] = ()
    plugin: str = ""  # that rejects their node, or the pod
    reasons: tuple[str, ...] = ()

    @property
    def is_difference(self) -> bool:
        return self.kind in DIFFERENCES

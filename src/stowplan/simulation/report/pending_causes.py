"""Why pods have no node: one cause for each, in the words of the last attempt at it.

The PodScheduled condition counts nodes by the reason that rejected them. Some of these reasons say that the pod is not
for the node (a taint, a selector); others that the node is not free for it now. If there are any of the latter, they
are the cause: a pod waits for a GPU, although most nodes have none and its selector leaves them out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from stowplan.engine.messages import ERROR
from stowplan.engine.queue.gate import GROUP
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.unit import QueueStage, Unit
from stowplan.objects.pods import Pod

NOT_TRIED = "not tried yet"
FAILED = "the attempt ended in an error"
GROUP_WAITS = "the group waits for more pods"
UNKNOWN_CAUSE = "rejected"
MOST_TEXT = 90  # characters of a cause
_SCARCE = "Insufficient "
_HEAD = "nodes are available: "
_REASON = re.compile(r"(?:^|, )(?:\d+ )?(.+?)(?=, \d+ |$)")
_QUOTED = re.compile(r' ?"[^"]*"')  # names: without them, alike causes are one
_TAIL = re.compile(r"\.(?: .*)?$", re.DOTALL)  # what post-filters add, beginning at the end of a sentence
_NOT_FOR_IT = (
    "node(s) had untolerated taint", "node(s) didn't match Pod's node affinity", "node(s) were unschedulable",
    "node(s) didn't match the requested node name", "node(s) didn't match scheduler-enforced node affinity",
)  # fmt: skip


def causes_of(queue: SchedulingQueue) -> Counter[str]:
    """Count the pods that wait in the queue, by cause."""
    found: Counter[str] = Counter()
    known: dict[str, str] = {}  # by message: many pods have the same
    for unit in queue.units.values():
        for pod in unit.pods.values():
            found[_cause(unit, pod, known)] += 1
    return found


def _cause(unit: Unit, pod: Pod, known: dict[str, str]) -> str:
    gate = unit.queued.gated_by
    if unit.stage is QueueStage.GATED and gate is not None:
        return GROUP_WAITS if gate.plugin == GROUP else f"held back by {gate.plugin}"
    condition = pod.condition("PodScheduled")
    if condition is None or condition.status != "False":
        return NOT_TRIED
    if condition.reason == ERROR:
        return FAILED
    cause = known.get(condition.message)
    if cause is None:
        cause = known[condition.message] = cause_of_message(condition.message)
    return cause


def cause_of_message(message: str) -> str:
    """Return the cause that a message of the scheduler has: "Insufficient cpu, memory"."""
    head, found, rest = message.partition(_HEAD)
    text = rest if found else head
    end = _TAIL.search(text)
    reasons = dict.fromkeys(
        _QUOTED.sub("", each).strip() for each in _REASON.findall(text[: end.start()] if end else text)
    )
    of_now = [each for each in reasons if not each.startswith(_NOT_FOR_IT)]
    cause = "; ".join(_together(of_now or reasons)) or UNKNOWN_CAUSE
    return cause if len(cause) <= MOST_TEXT else f"{cause[: MOST_TEXT - 1]}…"


def _together(reasons: Collection[str]) -> Iterator[str]:
    """Yield the reasons in order; all resources that are scarce are one."""
    scarce = sorted(each.removeprefix(_SCARCE) for each in reasons if each.startswith(_SCARCE))
    if scarce:
        yield f"{_SCARCE}{', '.join(scarce)}"
    yield from sorted(each for each in reasons if not each.startswith(_SCARCE))

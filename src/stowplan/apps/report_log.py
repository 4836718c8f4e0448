"""Log lines of what an engine reports, and how much must be wanted for each.

    always   an attempt that ended in an error
    v=2      each binding, each pod that found no place; of groups only whole ones: complete, failed, bound in part
    v=3      what a group waits for, and how long pods waited for a permit
    v=4      each pod of a group

A group of a thousand pods that does not fit is one line at v=2, and not a thousand.
"""

from __future__ import annotations

from stowplan.apps.logging import Log
from stowplan.engine import reports

FAILED, TRIED = "Unable to schedule pod; waiting", "Unable to schedule pod group; waiting"


def write(log: Log, what: reports.Report) -> None:
    match what:
        case reports.PodBound() if log.v >= 2:
            log.info("Successfully bound pod to node", level=_level(what.group), pod=what.pod, node=what.node_name)
        case reports.AttemptFailed(error=True):
            log.error("Error scheduling pod; retrying", pod=what.pod, err=what.message)
        case reports.AttemptFailed() if log.v >= 2:
            log.info(FAILED, level=_level(what.group), pod=what.pod, err=what.message)
        case reports.PreemptionStarted() if log.v >= 2:
            log.info("Preempting", level=2, pod=what.pod, node=what.node_name, victims=what.victims)
        case reports.PermitWaited() if log.v >= 3:
            said = "Pod was permitted" if what.allowed else "Pod was not permitted"
            log.info(said, level=3, pod=what.pod, seconds=round(what.seconds, 3))
        case (
            reports.GroupTried() | reports.GroupWaits() | reports.GroupComplete() | reports.GroupTimedOut()
            | reports.GroupInPart()
        ):  # fmt: skip
            _of_group(log, what)


def _of_group(log: Log, what: reports.OfGroup) -> None:
    match what:
        case reports.GroupTried(whole=True):
            log.info("Pod group has its nodes, binding when all are ready", level=3, group=what.group, pods=what.found)
        case reports.GroupTried():
            log.info(TRIED, level=2, group=what.group, found=what.found, needed=what.needed, err=what.message)
        case reports.GroupWaits():
            log.info("Pod group waits", level=3, group=what.group, why=what.message)
        case reports.GroupComplete():
            log.info("Pod group is complete", level=2, group=what.group, pods=what.pods, seconds=round(what.seconds, 3))
        case reports.GroupTimedOut():
            log.info("Pod group timed out, and gave back its nodes", level=2, group=what.group, seconds=what.seconds)
        case reports.GroupInPart():
            done = "is taken back" if what.evicts else "is to be completed"
            log.info(f"Pod group bound in part {done}", level=2, group=what.group, why=what.message)


def _level(group: str) -> int:
    return 4 if group else 2

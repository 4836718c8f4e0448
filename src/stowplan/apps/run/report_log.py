"""The log lines for the engine's reports, and the verbosity of each.

    always   an attempt that ended in an error; a binding that was none
    v=2      each pod that is bound or unschedulable; each group that is complete, unschedulable or partially bound
    v=3      what a group waits for, and how long pods waited for a permit
    v=4      each pod of a group

At v=2 a group of a thousand pods that does not fit is one line, not a thousand.
"""

from __future__ import annotations

from stowplan.apps.logging import Log
from stowplan.engine import reports

POD_FAILED, GROUP_FAILED = "Unable to schedule pod; waiting", "Unable to schedule pod group; waiting"


def write(log: Log, report: reports.Report) -> None:
    """Write the line for a report, if the log is that verbose."""
    match report:
        case reports.PodBound() if log.v >= 2:
            log.info(
                "Successfully bound pod to node", level=_level(report.group), pod=report.pod, node=report.node_name
            )
        case reports.BindingUnconfirmed():
            log.error(
                "The binding was answered with success, but the pod has no node; it is scheduled again",
                pod=report.pod, node=report.node_name,
            )  # fmt: skip
        case reports.AttemptFailed(error=True):
            log.error("Error scheduling pod; retrying", pod=report.pod, err=report.message)
        case reports.AttemptFailed() if log.v >= 2:
            log.info(POD_FAILED, level=_level(report.group), pod=report.pod, err=report.message)
        case reports.PreemptionStarted() if log.v >= 2:
            log.info("Preempting", level=2, pod=report.pod, node=report.node_name, victims=report.victims)
        case reports.PermitWaited() if log.v >= 3:
            line = "Pod was permitted" if report.allowed else "Pod was not permitted"
            log.info(line, level=3, pod=report.pod, seconds=round(report.seconds, 3))
        case (
            reports.GroupAttempted() | reports.GroupWaits() | reports.GroupComplete() | reports.GroupTimedOut()
            | reports.GroupPartiallyBound()
        ):  # fmt: skip
            _write_group(log, report)


def _write_group(log: Log, report: reports.OfGroup) -> None:
    match report:
        case reports.GroupAttempted(whole=True):
            log.info(
                "Pod group has its nodes, binding when all are ready", level=3, group=report.group, pods=report.found
            )
        case reports.GroupAttempted():
            log.info(
                GROUP_FAILED, level=2, group=report.group, found=report.found, needed=report.needed, err=report.message
            )
        case reports.GroupWaits():
            log.info("Pod group waits", level=3, group=report.group, why=report.message)
        case reports.GroupComplete():
            log.info(
                "Pod group is complete", level=2, group=report.group, pods=report.pods, seconds=round(report.seconds, 3)
            )
        case reports.GroupTimedOut():
            log.info("Pod group timed out, its nodes are released", level=2, group=report.group, seconds=report.seconds)
        case reports.GroupPartiallyBound():
            done = "is evicted" if report.evicts else "is to be completed"
            log.info(f"Partially bound pod group {done}", level=2, group=report.group, why=report.message)


def _level(group: str) -> int:
    return 4 if group else 2

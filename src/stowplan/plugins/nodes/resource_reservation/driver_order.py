"""First come, first served among Spark drivers: one that came later goes ahead only where the earlier ones still fit.

All waiting drivers of the same scheduler that came before are given their room first, in a reckoning of arrays. If one
of them finds none, those behind it wait; unless it is younger than a configured age, because it may still be helped.
"""

from __future__ import annotations

from datetime import UTC, datetime

from stowplan.columns.nodes.views import Cluster
from stowplan.objects import spark
from stowplan.objects.applications import is_driver
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.resource_reservation.application_fit import ApplicationFit, room_of
from stowplan.plugins.nodes.resource_reservation.packing import Room

DOES_NOT_FIT = "application does not fit to the cluster"
EARLIER = "earlier drivers do not fit to the cluster"
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class DriverOrder:
    def __init__(self, company: ApplicationFit, enforced_after: float) -> None:
        """`enforced_after`: seconds since this scheduler first saw a driver until others have to wait for it."""
        self._company, self._enforced_after = company, enforced_after
        self._seen: dict[str, float] = {}  # when each waiting driver was first met

    def behind(self, pod: Pod, cluster: Cluster) -> str:
        """Why the driver has to wait for others, or nothing."""
        drivers = cluster.pending_pods(is_driver)
        waiting = {each.uid: each for each in drivers if each.scheduler_name == pod.scheduler_name}
        self._seen = {uid: self._seen.get(uid, cluster.now) for uid in (*waiting, pod.uid)}
        ahead = sorted((each for each in waiting.values() if _came(each) < _came(pod) and _counts(each)), key=_came)
        if not ahead:
            return ""
        companies = [(each, spark.executors(each)) for each in (*ahead, pod)]
        needs = [each for _, each in companies if each is not None]
        room: Room = room_of(cluster.nodes, *ahead, pod, *needs)
        for driver, executors in companies:
            left = None if executors is None else self._company.settled(room, driver, executors, cluster)
            if left is None and driver is pod:
                return DOES_NOT_FIT
            if left is None and cluster.now - self._seen[driver.uid] >= self._enforced_after:
                return EARLIER
            room = room if left is None else left
        return ""


def _counts(driver: Pod) -> bool:
    """Does it say what its executors need, and may it be tried?"""
    needs = spark.executors(driver)
    return needs is not None and not needs.problem and not driver.spec.scheduling_gates


def _came(driver: Pod) -> tuple[datetime, str]:
    return driver.metadata.creation_timestamp or LONG_AGO, driver.uid

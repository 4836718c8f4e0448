"""First in, first out for Spark drivers: a driver is scheduled only if all earlier drivers still fit.

All earlier waiting drivers of the same scheduler get their room first, in a calculation on arrays. If one of them does
not fit, later drivers wait, unless it is younger than a configured age.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.applications import is_driver
from stowplan.objects.pods import Pod
from stowplan.objects.spark import Executors
from stowplan.plugins.nodes.resource_reservation.application_fit import ApplicationFit, room_of
from stowplan.plugins.nodes.resource_reservation.packing import Room

DOES_NOT_FIT = "application does not fit to the cluster"
EARLIER = "earlier drivers do not fit to the cluster"
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class DriverOrder:
    def __init__(
        self, fit: ApplicationFit, enforced_after: float, executors_of: Callable[[Pod], Executors | None]
    ) -> None:
        """`enforced_after`: how many seconds after a driver was first seen later drivers wait for it."""
        self._fit, self._enforced_after, self._executors_of = fit, enforced_after, executors_of
        self._seen: dict[str, float] = {}  # when each waiting driver was first seen

    def must_wait(self, pod: Pod, cluster: Cluster) -> str:
        """Return why the driver must wait for others, or an empty text."""
        drivers = cluster.pending_pods(is_driver)
        waiting = {each.uid: each for each in drivers if each.scheduler_name == pod.scheduler_name}
        self._seen = {uid: self._seen.get(uid, cluster.now) for uid in (*waiting, pod.uid)}
        earlier = sorted(
            (each for each in waiting.values() if _created(each) < _created(pod) and self._counts(each)), key=_created
        )
        if not earlier:
            return ""
        applications = [(each, self._executors_of(each)) for each in (*earlier, pod)]
        needs = [each for _, each in applications if each is not None]
        room: Room = room_of(cluster.nodes, *earlier, pod, *needs)
        for driver, executors in applications:
            left = None if executors is None else self._fit.room_after(room, driver, executors, cluster)
            if left is None and driver is pod:
                return DOES_NOT_FIT
            if left is None and cluster.now - self._seen[driver.uid] >= self._enforced_after:
                return EARLIER
            room = room if left is None else left
        return ""

    def _counts(self, driver: Pod) -> bool:
        """True if it is known what the driver's executors need, and it has no scheduling gates."""
        needs = self._executors_of(driver)
        return needs is not None and not needs.problem and not driver.spec.scheduling_gates


def _created(driver: Pod) -> tuple[datetime, str]:
    return driver.metadata.creation_timestamp or LONG_AGO, driver.uid

"""An attempt that failed: the unit goes back into the queue, and each of its pods gets a condition and an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from stowplan.columns.pods.nominated_pods import Companions
from stowplan.engine import messages
from stowplan.engine.groups.groups import Groups
from stowplan.engine.nominations import Nominations
from stowplan.engine.outbox import Outbox
from stowplan.engine.queue.scheduling_queue import MOST_HANGS, SchedulingQueue
from stowplan.engine.reports import AttemptFailed, Report
from stowplan.engine.unit import Unit
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed, and what follows from it for the unit's pods.

    plugins          the plugins that rejected the unit; none: an error, after which the unit backs off
    pending          those of them that only wait for another component
    is_error         whether the condition says SchedulerError; None: if no plugin rejected the unit
    nominated_nodes  the node nominated for the pods from now on (for each pod, by uid); "" for none, None: no change
    companions       the pods to nominate with them that do not exist yet, by uid
    announced        the pods' status may name another nominated node than we know
    messages         messages of their own for some pods, by uid
    pods             uids of the pods that failed just now; None: all. The others are in the unit already.
    """

    message: str
    plugins: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    is_error: bool | None = None
    nominated_nodes: str | Mapping[str, str] | None = ""
    companions: Mapping[str, Companions] = field(default_factory=dict)
    announced: bool = False
    messages: Mapping[str, str] = field(default_factory=dict)
    pods: tuple[str, ...] | None = None

    @property
    def error(self) -> bool:
        return not self.plugins if self.is_error is None else self.is_error

    def nominated_node(self, uid: str) -> str | None:
        nodes = self.nominated_nodes
        return nodes.get(uid, "") if isinstance(nodes, Mapping) else nodes


class FailureHandler:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        known: Mapping[str, Pod],
        queue: SchedulingQueue,
        groups: Groups,
        nominations: Nominations,
        outbox: Outbox,
        report: Callable[[Report], None],
    ) -> None:
        """`known`: every pod that the API server told us about, by uid."""
        self._profiles, self._known, self._queue, self._groups = profiles, known, queue, groups
        self._nominations, self._outbox, self._report = nominations, outbox, report

    def requeue(self, unit: Unit, failure: Failure, now: float) -> None:
        """Put the unit back into the queue and tell its pods why."""
        self._update_pods(unit, unit.pods if failure.pods is None else failure.pods)
        if not unit.pods:
            if self._queue.units.get(unit.key) is unit:
                self._queue.remove(unit.key)
            self._queue.done(unit)
            return
        if unit.group:
            self._groups.changed[unit.group] = None
            self._groups.refresh(unit)
        self._queue.fail(unit, now, failure.plugins, failure.pending)
        if unit.group:
            self._groups.failed(unit.group, unit.queued.errors, now)
        for uid in list(unit.pods if failure.pods is None else failure.pods):
            pod = unit.pods.get(uid)
            if pod is not None and uid not in unit.gated.verdicts:  # a gated member was not attempted
                self._tell(pod, unit, failure, now)
                if unit.group:
                    self._groups.attempted(uid)
        if unit.queued.hung >= MOST_HANGS:
            self._tell_set_aside(unit, failure.message, now)

    def plugin_hung(self, unit: Unit, problem: str, now: float) -> None:
        """A plugin hung in the unit's last attempt. If it is set aside now, its pods are told."""
        if self._queue.hung(unit):
            self._tell_set_aside(unit, problem, now)

    def _tell_set_aside(self, unit: Unit, problem: str, now: float) -> None:
        for pod in list(unit.pods.values()):
            for action in messages.set_aside(pod, problem):
                self._outbox.send(action, now)

    def _update_pods(self, unit: Unit, uids: Iterable[str]) -> None:
        """Take the pods as they are now, without those that are deleted, bound or terminating."""
        for uid in list(uids):
            latest = self._known.get(uid)
            ours = latest is not None and latest.scheduler_name in self._profiles
            if latest is None or not ours or latest.node_name or latest.terminating:
                self._queue.drop_pod(unit, uid)
            else:
                unit.add(latest)

    def _tell(self, pod: Pod, unit: Unit, failure: Failure, now: float) -> None:
        node_name = failure.nominated_node(pod.uid)
        if node_name is not None:
            self._nominations.replace(self._known[pod.uid], node_name, now, failure.companions.get(pod.uid, ()))
        message = failure.messages.get(pod.uid, failure.message)
        self._report(AttemptFailed(pod.key, unit.profile, failure.error, message, unit.group))
        told = messages.failure(
            pod, message, error=failure.error, nominated=node_name, announced=failure.announced
        )  # fmt: skip
        for action in told:
            self._outbox.send(action, now)

"""An attempt that failed: the unit goes back into the queue, and each of its pods is told why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from stowplan.engine import messages
from stowplan.engine.queue.admission import Admission
from stowplan.engine.queue.unit import Unit
from stowplan.engine.reports import AttemptFailed, Report


class FailureHandler:
    def __init__(self, admission: Admission, report: Callable[[Report], None]) -> None:
        self._admission, self._report = admission, report

    def back(
        self,
        unit: Unit,
        message: str,
        now: float,
        *,
        plugins: Iterable[str] = (),
        error: bool | None = None,
        nominated: str | Mapping[str, str] | None = "",
        announced: bool = False,
        told: Mapping[str, str] | None = None,
        only: Collection[str] | None = None,
        pending: Iterable[str] = (),
    ) -> Iterator[Any]:
        """Rejected by plugins, or (by none) failed: then it backs off as after an error, and is told that it was one
        unless `error` says otherwise.

        `nominated`: the node promised to the pod from now on (to each pod, by uid), "" for none, None for no change;
        `announced`: another one may stand in its status. `told` has words of its own for some of the pods; `only` these
        failed just now, the others are in the unit already. `pending`: those plugins that only wait for somebody else
        to act.
        """
        self._only_those_left(unit, unit.pods if only is None else only)
        if not unit.pods:
            if self._admission.queue.units.get(unit.key) is unit:
                self._admission.queue.remove(unit.key)
            self._admission.queue.done(unit)
            return
        plugins = frozenset(plugins)
        if unit.group:
            self._admission.groups.changed[unit.group] = None
        self._admission.measure(unit)
        self._admission.queue.fail(unit, now, plugins, pending)
        self._admission.groups.failed(unit.group, unit.errors, now)
        for uid in list(unit.pods if only is None else only):
            pod = unit.pods.get(uid)
            if pod is None:
                continue
            promised = nominated.get(uid, "") if isinstance(nominated, Mapping) else nominated
            self._promise(uid, promised)
            text = (told or {}).get(uid, message)
            is_error = not plugins if error is None else error
            self._report(AttemptFailed(pod.key, unit.profile, is_error, text, unit.group))
            yield from messages.failure(pod, text, error=is_error, nominated=promised, announced=announced)

    def _only_those_left(self, unit: Unit, uids: Iterable[str]) -> None:
        """The pods as they are now, without those that are gone, bound or on their way out."""
        known = self._admission.known
        for uid in list(uids):
            latest = known.get(uid)
            ours = latest is not None and latest.scheduler_name in self._admission.profiles
            if latest is None or not ours or latest.node_name or latest.terminating:
                unit.leave(uid)
                self._admission.unit_of.pop(uid, None)
            else:
                unit.join(latest)

    def _promise(self, uid: str, nominated: str | None) -> None:
        """The state counts the pod on the node it is promised, before the API server even knows."""
        if nominated is None:
            return
        state = self._admission.state
        state.nominations.drop(uid)
        if nominated:
            self._admission.promise(self._admission.known[uid], nominated)

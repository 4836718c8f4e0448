"""The scheduler as a machine without a clock: `handle` takes changes, `step` decides, both return actions.

    submitted ─► gated ◄──────────────┐
        │          │ gate opens       │ gate closes
        ▼          ▼                  │
      active ◄── backoff ◄── unschedulable ◄───────────────┐
        │                                                  │
        │ step                                             │ rejected
        ▼                                                  │
     deciding ── no node ─────────────────────────────────►┤   (evictions, nomination, condition, event)
        │ node                                             │
        ▼                                                  │
     reserved ── reserve or permit refuses ───────────────►┤   (released in reverse order)
        │                                                  │
        ├─► waiting ── permit refused, or its time is up ─►┤
        │      │ allowed                                   │
        ▼      ▼                                           │
     pre-binding ── an action fails ─► error backoff       │
        │                                                  │
        ▼                                                  │
     binding ── refused, or never answered ─► error backoff, after the pod was read again
        │
        ▼
      bound                (deleted, finished, or bound by somebody else: out, from everywhere, released)

What is reserved is in the one state (`columns.ClusterState`) as an assumed pod, so nothing is counted twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.engine import gang, happenings, messages
from stowplan.engine.admission import Admission
from stowplan.engine.happenings import ASSIGNED, Happening
from stowplan.engine.placing import Placing, Step
from stowplan.engine.trails import Trails
from stowplan.engine.unit import Unit
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import Decision
from stowplan.objects.actions import Action, Evict, Nominate, Read
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

ANSWER_WITHIN = 30.0  # seconds until an action counts as lost


class Scheduler:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        generator: np.random.Generator,
        *,
        state: ClusterState | None = None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        longest_wait: float = 300.0,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        self.profiles = dict(profiles)
        self.state = state or ClusterState()
        self.trails = Trails()
        self._generator, self._answer_within = generator, answer_within
        self.admission = Admission(
            self.profiles,
            self.state,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            longest_wait=longest_wait,
        )
        self.queue = self.admission.queue
        self.placings: dict[str, Placing] = {}  # by the pod's uid
        self._asked: dict[int, str] = {}  # unanswered actions that matter, and the pods they are for
        self._due: list[tuple[float, int, str, str]] = []  # deadlines: of an action, or of a pod's wait at a plugin
        self._known: dict[str, Pod] = {}  # every pod the API told us of, by uid
        self._last_id = 0

    # -- changes

    def handle(self, change: Put | Gone | Result, now: float) -> list[Action]:
        """Take in what happened; what follows from it at once comes back as actions."""
        if isinstance(change, Result):
            return self._sent(self._answered(change, now), now)
        found, gone = change.object, isinstance(change, Gone)
        if isinstance(found, Pod):
            self._pod_changed(found, gone, now)
            return []
        old = self._old(found)
        self.state.apply(change)
        self.admission.happened(happenings.of(old, None if gone else found), now)
        return []

    def _old(self, found: Object) -> Object | None:
        if not isinstance(found, Node):
            return self.state.store.get(type(found), found.key)
        row = self.state.table.row_of.get(found.name)
        return None if row is None else self.state.table.nodes[row]

    def _pod_changed(self, pod: Pod, gone: bool, now: float) -> None:
        old = self._known.pop(pod.uid, None)
        out = gone or pod.finished
        if not out:
            self._known[pod.uid] = pod
        placing = self.placings.get(pod.uid)
        if placing is not None and (out or (pod.node_name and pod.node_name != placing.node_name) or pod.terminating):
            self._drop(placing)
            placing = None
        if out or pod.node_name:
            self.admission.withdraw(pod.uid, now)
            self.state.apply(Gone(pod) if out else Put(pod))
            if placing is not None and placing.step is not Step.BINDING:
                self._drop(placing)  # somebody bound it where we wanted to
        elif placing is None:
            self.admission.submit(pod, now)
        self.admission.happened(happenings.of(old, None if out else pod), now)

    # -- deciding

    def step(self, now: float) -> list[Action]:
        """Settle what ran out of time, then decide one unit."""
        actions = list(self._expire(now))
        unit = self.queue.pop(now)
        if unit is not None:
            actions += self._try(unit, now)
        return self._sent(actions, now)

    def next_deadline(self) -> float | None:
        """When time alone makes a step worth taking; minus infinity if one is already."""
        due, queued = self._next_due(), self.queue.next_deadline()
        return min([*(() if due is None else (due[0],)), *(() if queued is None else (queued,))], default=None)

    def _try(self, unit: Unit, now: float) -> Iterator[Action]:
        """Place the unit's pods; all of them go on together, or all fail."""
        outcome = gang.place(unit, self.state, self.profiles[unit.profile], self._generator)
        for decision in outcome.decisions:
            self.trails.keep(decision)
        if not outcome.whole:
            yield from self._no_room(unit, outcome, now)
            return
        problem = self._reserve(outcome, now)
        if problem is not None:
            message, plugins = problem
            yield from self._failed(unit, message, plugins, now, error=not plugins)
            return
        for placing in outcome.placings:
            self.placings[placing.pod.uid] = placing
            del unit.pods[placing.pod.uid]
            self.admission.unit_of.pop(placing.pod.uid, None)
        if unit.pods:
            yield from self._left_over(unit, outcome, now)
        else:
            self.queue.forget(unit)
        for placing in outcome.placings:
            if placing.permits:
                placing.step = Step.WAITING
                for plugin, until in placing.permits.items():
                    heapq.heappush(self._due, (until, 0, placing.pod.uid, plugin))
            else:
                yield from self._pre_bind(placing, now)

    def _left_over(self, unit: Unit, outcome: gang.Outcome, now: float) -> Iterator[Action]:
        """Members beyond those that the group needs, for whom there was no room: they go on by themselves."""
        plugins = frozenset[str]().union(*(rejectors(each) for each in outcome.failed))
        told = {each.pod.uid: each.full_message for each in outcome.failed}
        yield from self._failed(unit, f"Pod group {unit.group} runs without this pod", plugins, now, told=told)

    def _reserve(self, outcome: gang.Outcome, now: float) -> tuple[str, tuple[str, ...]] | None:
        """Reserve and permit for all; if one is refused everything is given back, the last first."""
        for at, placing in enumerate(outcome.placings):
            try:
                refused = placing.reserve() or placing.ask_permits(now)
            except PluginError as error:
                placing.release()
                refused, broken = None, str(error)
            else:
                broken = ""
            if refused is not None or broken:
                for other in reversed(outcome.placings[:at] + outcome.placings[at + 1 :]):
                    other.release()
                return (broken, ()) if refused is None else (", ".join(refused.reasons), (refused.plugin,))
        return None

    def _no_room(self, unit: Unit, outcome: gang.Outcome, now: float) -> Iterator[Action]:
        decision = outcome.failed[-1]
        if len(unit.pods) == 1:
            yield from self._no_node(unit, decision, now)
            return
        told = {each.pod.uid: gang.blocked(unit, outcome, each) for each in outcome.decisions}
        rest = f"Pod group {unit.group} does not fit as a whole: {decision.full_message}"
        plugins = frozenset[str]().union(*(rejectors(each) for each in outcome.failed))
        error = bool(decision.error)
        yield from self._failed(unit, rest, plugins, now, error=error, told=told)

    def _no_node(self, unit: Unit, decision: Decision, now: float) -> Iterator[Action]:
        pod, made = decision.pod, decision.post_filter
        if decision.error:
            yield from self._failed(unit, decision.error, (), now, error=True)
            return
        nominated: str | None = None
        if made is not None and made.candidate is not None:
            nominated = made.candidate.node
            yield from self._evict(pod, made.candidate.node, made.candidate.victims, now)
        elif pod.nominated_node:
            nominated = ""
        if nominated is not None:
            self.state.drop_nomination(pod.uid)
            if nominated:
                self.state.nominate(pod, nominated)
        yield from self._failed(unit, decision.full_message, rejectors(decision), now, nominated=nominated)

    def _evict(self, pod: Pod, node_name: str, victims: Iterable[Pod], now: float) -> Iterator[Action]:
        """Victims go, those not yet sent to be bound without being deleted; lesser pods lose promises on that node."""
        for other in list(self.state.nominated.get(node_name, {}).values()):
            if other.priority < pod.priority:
                self.state.drop_nomination(other.uid)
                yield Nominate(pod=messages.ref(other), node_name="")
        for victim in victims:
            if victim.terminating:
                continue
            placing = self.placings.get(victim.uid)
            if placing is not None and placing.step is not Step.BINDING:
                yield from self._give_up(placing, f"preempted by pod {pod.uid}", (), now, error=True)
                continue
            yield Evict(
                pod=messages.ref(victim),
                reason="PreemptionByScheduler",
                message=f"{pod.scheduler_name}: {messages.PREEMPTED}",
            )
            yield messages.preempted(victim, pod, node_name)

    def _failed(
        self,
        unit: Unit,
        message: str,
        plugins: Iterable[str],
        now: float,
        *,
        error: bool = False,
        nominated: str | None = None,
        told: Mapping[str, str] | None = None,
    ) -> Iterator[Action]:
        """Back into the queue, and each of its pods is told why (`told` has words of its own for some)."""
        for uid in list(unit.pods):
            latest = self._known.get(uid)
            if latest is None or latest.node_name or latest.terminating:
                del unit.pods[uid]
                self.admission.unit_of.pop(uid, None)
            else:
                unit.pods[uid] = latest
        if not unit.pods:
            self.queue.remove(unit.key)
            return
        if unit.group:
            group = self.admission.group_of(unit.lead, self.profiles[unit.profile])
            unit.needed = 1 if group is None else max(group.missing, 1)
        self.queue.fail(unit, now, () if error else plugins)
        for uid, pod in unit.pods.items():
            text = (told or {}).get(uid, message)
            condition = messages.unschedulable(pod, text, error=error, nominated_node=nominated)
            if condition is not None:
                yield condition
            yield messages.failed(pod, text)

    # -- binding

    def allow(self, uid: str, plugin: str, now: float) -> list[Action]:
        """A plugin that made the pod wait lets it go on."""
        placing = self.placings.get(uid)
        if placing is None or placing.step is not Step.WAITING:
            return []
        placing.permits.pop(plugin, None)
        return [] if placing.permits else self._sent(self._pre_bind(placing, now), now)

    def reject(self, uid: str, plugin: str, message: str, now: float) -> list[Action]:
        """A plugin that made the pod wait refuses it after all."""
        placing = self.placings.get(uid)
        if placing is None or placing.step is not Step.WAITING:
            return []
        return self._sent(self._give_up(placing, message, (plugin,), now), now)

    def _pre_bind(self, placing: Placing, now: float) -> Iterator[Action]:
        self.queue.done(placing.unit)
        placing.step = Step.PRE_BINDING
        try:
            actions = [self._numbered(action, now, placing.pod.uid) for action in placing.pre_bind()]
        except PluginError as error:
            yield from self._give_up(placing, str(error), (), now, error=True)
            return
        placing.awaited = {action.id for action in actions}
        yield from actions
        if not actions:
            yield from self._bind(placing, now)

    def _bind(self, placing: Placing, now: float) -> Iterator[Action]:
        placing.step = Step.BINDING
        try:
            action = placing.bind()
        except PluginError as error:
            yield from self._give_up(placing, str(error), (), now, error=True)
            return
        if action is None:
            yield from self._give_up(placing, "no plugin wants to bind the pod", (), now, error=True)
            return
        numbered = self._numbered(action, now, placing.pod.uid)
        placing.awaited = {numbered.id}
        yield numbered

    def _answered(self, result: Result, now: float) -> Iterator[Action]:
        placing = self.placings.get(self._asked.pop(result.id, ""))
        if placing is None or result.id not in placing.awaited:
            return
        placing.awaited.discard(result.id)
        if not result.fine:
            yield from self._refused_by_server(placing, result, now)
        elif placing.step is Step.BINDING:
            yield from self._bound(placing, now)
        elif not placing.awaited:
            yield from self._bind(placing, now)

    def _bound(self, placing: Placing, now: float) -> Iterator[Action]:
        del self.placings[placing.pod.uid]
        self.admission.withdraw(placing.pod.uid, now)
        yield messages.scheduled(placing.pod, placing.node_name)
        try:
            yield from list(placing.post_bind())
        except PluginError:
            return  # the pod is bound; what a plugin makes of that is its own affair

    def _refused_by_server(self, placing: Placing, result: Result, now: float) -> Iterator[Action]:
        """What the server said no to. A pod it does not know is gone; one in conflict is read again."""
        if result.status in (404, 410):
            self._drop(placing)
            self.admission.withdraw(placing.pod.uid, now)
            return
        yield from self._give_up(placing, f"binding rejected: {result.message}", (), now, error=True)
        if result.status in (0, 409):
            yield Read(pod=messages.ref(placing.pod))

    def _give_up(
        self, placing: Placing, message: str, plugins: Iterable[str], now: float, *, error: bool = False
    ) -> Iterator[Action]:
        unit = self.queue.units.get(placing.unit.key, placing.unit)
        for each in self._together(placing):
            self._drop(each)
            unit.pods[each.pod.uid] = each.pod
            self.admission.unit_of[each.pod.uid] = unit.key
            self.admission.happened([Happening(ASSIGNED, "Delete", each.assumed, None)], now)
        yield from self._failed(unit, message, plugins, now, error=error)

    def _together(self, placing: Placing) -> list[Placing]:
        """A pod and those of its group that have not been sent to be bound yet: what fails for one fails for all."""
        others = (each for each in self.placings.values() if each.unit is placing.unit and each is not placing)
        return [placing, *(each for each in others if each.step is not Step.BINDING)]

    def _drop(self, placing: Placing) -> None:
        """Forget a placing and give back all it took."""
        self.placings.pop(placing.pod.uid, None)
        for number in placing.awaited:
            self._asked.pop(number, None)
        try:
            placing.release()
        except PluginError:
            return

    # -- time and numbers

    def _expire(self, now: float) -> Iterator[Action]:
        """Settle what was due by now: pods that waited too long, actions that nobody answered."""
        while (due := self._next_due()) is not None and due[0] <= now:
            heapq.heappop(self._due)
            _, number, uid, plugin = due
            if number:
                yield from self._answered(Result(number, 0, "no answer in time"), now)
            else:
                message = f"rejected due to timeout after waiting at plugin {plugin}"
                yield from self._give_up(self.placings[uid], message, (plugin,), now)

    def _next_due(self) -> tuple[float, int, str, str] | None:
        """The first deadline that still means something; void ones are thrown away."""
        while self._due:
            due = self._due[0]
            _, number, uid, plugin = due
            placing = self.placings.get(uid)
            waits = placing is not None and placing.step is Step.WAITING and plugin in placing.permits
            if number in self._asked if number else waits:
                return due
            heapq.heappop(self._due)
        return None

    def _sent(self, actions: Iterable[Any], now: float) -> list[Action]:
        return [action if action.id else self._numbered(action, now, "") for action in actions]

    def _numbered(self, action: Any, now: float, uid: str) -> Any:
        self._last_id += 1
        numbered = msgspec.structs.replace(action, id=self._last_id, deadline=now + self._answer_within)
        if uid:
            self._asked[numbered.id] = uid
            heapq.heappush(self._due, (numbered.deadline, numbered.id, uid, ""))
        return numbered


def rejectors(decision: Decision) -> frozenset[str]:
    """The plugins that stood in the way: who refused the pod or narrowed the search, or whose verdict some node has."""
    if decision.refused is not None:
        return frozenset((decision.refused.plugin, *decision.narrowed_by)) - {""}
    used = np.unique(decision.trail.verdict_of)
    names = {decision.trail.verdicts[number].plugin for number in used.tolist() if number >= 0}
    return frozenset((*names, *decision.narrowed_by)) - {""}

"""Random changes and failures in any order: the invariants hold after every step, and in the end every pod that fits
runs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stowplan.engine.attempt import placer
from stowplan.engine.pods import assumed
from stowplan.engine.queue.record import QueueStage
from stowplan.engine.unit import Unit
from stowplan.framework.config.settings import Extender
from stowplan.objects.actions import Action, Ask, Bind, Evict, Nominate, Read, SetCondition
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.small_plugins import Gangs, Ledger, Patience, profiles
from tests.hypothesis_settings import at_most

NODES = ("a", "b", "c")
NAMES = tuple(f"p{number}" for number in range(6))
GANGS = {"g": 2, "h": 3}
MEMBERS = tuple(f"{gang}{number}" for gang, least in GANGS.items() for number in range(least + 1))
EVERYBODY = (*NAMES, *MEMBERS)
OF_A_POD = (Bind, Read, Evict, SetCondition, Nominate)


class Storm(RuleBasedStateMachine):
    extenders: tuple[Extender, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        nodes = [a_node("a", cpu=2), a_node("b", cpu=2)]
        self.ledger = Ledger()
        named = profiles(postBind=[Gangs()], permit=[Patience()], reserve=[self.ledger])
        self.world = World(nodes=nodes, profiles=named, answer_within=5, graceful=True, extenders=self.extenders)
        self.world.on_assumed = self.groups_are_never_half_committed
        self.born = 0
        self.groups_placed: set[str] = set()

    @initialize(cpus=st.lists(st.sampled_from(["100m", "1", "2"]), min_size=2, max_size=6))
    def some_pods(self, cpus: list[str]) -> None:
        for name, cpu in zip(NAMES, cpus, strict=False):
            self.pod(name, cpu, 0, (), "", False, "", "")

    @rule(name=st.sampled_from(NODES), cpu=st.integers(1, 4), taint=st.booleans())
    def node(self, name: str, cpu: int, taint: bool) -> None:
        self.world.submit(a_node(name, cpu=cpu, taints=["t=v:NoSchedule"] if taint else []))

    @rule(name=st.sampled_from(NODES))
    def node_goes(self, name: str) -> None:
        self.world.delete(a_node(name))

    @rule(
        name=st.sampled_from(NAMES),
        cpu=st.sampled_from(["100m", "1", "2"]),
        priority=st.integers(0, 2),
        ports=st.sampled_from([(), (80,)]),
        gate=st.sampled_from(["", "", "", "g"]),
        tolerant=st.booleans(),
        gang=st.sampled_from(["", "", *GANGS]),
        patience=st.sampled_from(["", "", "3"]),
    )
    def pod(
        self, name: str, cpu: str, priority: int, ports: Any, gate: str, tolerant: bool, gang: str, patience: str
    ) -> None:
        if self._some(name) is not None:
            return
        self.born += 1
        extra: dict[str, Any] = {"schedulingGates": [{"name": gate}]} if gate else {}
        labels = {"gang": gang, "min": str(GANGS[gang])} if gang else {}
        labels |= {"patience": patience} if patience else {}
        priority = 1 if gang and name != NAMES[0] else priority  # else it is no member: they must agree
        tolerations = ["t:NoSchedule"] if tolerant else []
        uid = f"{name}-{self.born}"
        pod = a_pod(
            name, uid=uid, cpu=cpu, priority=priority, ports=ports, tolerations=tolerations, labels=labels, **extra
        )
        self.world.submit(pod)

    @rule(
        gang=st.sampled_from(list(GANGS)),
        cpu=st.sampled_from(["100m", "100m", "1"]),
        more=st.integers(0, 1),
        patience=st.sampled_from(["", "", "", "3"]),
    )
    def whole_gang(self, gang: str, cpu: str, more: int, patience: str) -> None:
        for number in range(GANGS[gang] + more):
            self.pod(f"{gang}{number}", cpu, 1, (), "", True, gang, patience if number == 0 else "")

    def _some(self, name: str) -> Pod | None:
        found = self.world.objects.get(("Pod", f"default/{name}"))
        return found if isinstance(found, Pod) else None

    @rule(name=st.sampled_from(EVERYBODY))
    def pod_goes(self, name: str) -> None:
        pod = self._some(name)
        if pod is not None:
            self.world.delete(pod)

    @rule(name=st.sampled_from(NAMES))
    def gate_opens(self, name: str) -> None:
        pod = self._some(name)
        if pod is not None and pod.spec.scheduling_gates and not pod.node_name:
            self.world.submit(a_pod(name, uid=pod.uid, cpu=1, priority=pod.priority, labels=dict(pod.labels)))

    @rule()
    def those_on_their_way_out_are_gone(self) -> None:
        self.world.delete(*(pod for pod in self.world.pods() if pod.terminating))

    @rule(name=st.sampled_from(EVERYBODY), node=st.sampled_from(NODES))
    def somebody_else_binds(self, name: str, node: str) -> None:
        pod = self._some(name)
        if pod is not None and not pod.node_name:
            self.world.submit(assumed(pod, node))

    @rule(
        status=st.sampled_from([200, 200, None, 404, 409, 410, 429, 500, 503]),
        kinds=st.sampled_from([(Bind,), (Bind, Read), (Evict,), (SetCondition, Nominate)]),
        name=st.sampled_from(["", "", *MEMBERS]),
    )
    def server(self, status: int | None, kinds: tuple[type[Action], ...], name: str) -> None:
        """From now on give this answer to actions of these kinds, about all pods or one."""

        def answer(action: Action) -> Result | None:
            spared = isinstance(action, Read) and status in (404, 410)  # a server does not deny what it has
            other = isinstance(action, OF_A_POD) and name not in ("", action.pod.name)
            if status == 200 or spared or other or not isinstance(action, kinds):
                return Result(action.id)
            return None if status is None else Result(action.id, status, "no")

        self.world.answers = answer

    @rule(steps=st.integers(1, 3))
    def news_are_late(self, steps: int) -> None:
        """Pause the watch: answers come before the changes are seen."""
        self.world.pause_watch()
        self.world.checks = False
        for _ in range(steps):
            self.world.run(limit=10_000)
        self.world.checks = True
        self.world.resume_watch()

    @rule(allowed=st.booleans())
    def somebody_decides_about_waiting_pods(self, allowed: bool) -> None:
        for uid, placing in list(self.world.scheduler.assumed_pods.items()):
            if placing.permits:
                self.world.allow(uid, "Patience") if allowed else self.world.reject(uid, "Patience", "no")

    @rule()
    def steps(self) -> None:
        self.world.run()

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 7.0, 40.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(really=st.sampled_from([False, False, False, True]))
    def restart(self, really: bool) -> None:
        if really:
            self.ledger.held.clear()
            self.world.restart()

    @invariant()
    def holds(self) -> None:
        self.world.check()
        assumed_uids = set(self.world.scheduler.assumed_pods)
        assert assumed_uids <= self.ledger.held, "assumed without a reservation"
        there = {*self.world.bound, *(pod.uid for pod in self.world.pods() if pod.node_name)}
        assert self.ledger.held - assumed_uids <= there, "reserved for a pod that is not assumed"

    def groups_are_never_half_committed(self, uids: set[str]) -> None:
        """A step that gives nodes to members of a group gives them to enough, with those that had one before."""
        state = self.world.scheduler.state
        gangs = {state.pods[uid].pod.labels.get("gang", "") for uid in uids} - {""}
        self.groups_placed |= gangs
        having = Counter(placed.pod.labels.get("gang", "") for placed in state.pods.values())
        for each in gangs:
            assert having[each] >= GANGS[each], f"only {having[each]} of group {each}"

    settles_in = 40.0  # seconds: longer than any backoff, much shorter than the flush

    def teardown(self) -> None:
        """With an API server that answers, every unit that fits is placed soon: requeued by events, not by the flush
        after five minutes.
        """
        self.world.answers = lambda action: Result(action.id)
        self.world.advance(self.settles_in)
        self.those_on_their_way_out_are_gone()
        self.world.advance(self.settles_in)
        self.world.check()
        waiting = [each.permits or each.bind_together for each in self.world.scheduler.assumed_pods.values()]
        assert all(waiting), "still under way, and not because of a permit"
        for unit in self.world.scheduler.queue.units.values():
            gated_by = unit.queued.gated_by
            if gated_by is not None and any("but this pod has" in reason for reason in gated_by.reasons):
                continue  # a member does not agree with the others about the priority, and is held back
            complete = gated_by is None or len(unit.pods) >= unit.needed
            if complete and not any(pod.spec.scheduling_gates for pod in unit.pods.values()):
                self.nobody_starves(unit)

    def nobody_starves(self, unit: Unit) -> None:
        gangs = {pod.labels.get("gang", "") for pod in unit.pods.values()} - {""}
        of_them = (pod for pod in self.world.pods() if pod.labels.get("gang", "") in gangs or pod.uid in unit.pods)
        if any("patience" in pod.labels for pod in of_them):
            return  # it may wait; to try it would cost it the nodes that it is nominated to, and others would fit then
        if unit.stage is QueueStage.BACKOFF and any("patience" in pod.labels for pod in self.world.pods()):
            return  # it is due, but pods that wait for a permit take the room again and again, and release it
        scheduler, dice = self.world.scheduler, np.random.default_rng(0)
        outcome = placer.Placer(scheduler.state, dice).place(unit, scheduler.profiles[unit.profile], {})
        assert not outcome.whole, f"{[*unit.pods]} could run and are {unit.stage}"


class StormWithExtender(Storm):
    """The same with an HTTP extender that rejects a node for some pods, scores the rest, binds, and may fail."""

    extenders = (
        Extender(url_prefix="http://one", filter_verb="f", prioritize_verb="p", weight=1, node_cache_capable=True),
        Extender(url_prefix="http://two", preempt_verb="e", bind_verb="b", ignorable=True, node_cache_capable=True),
    )
    settles_in = 400.0  # any event requeues a pod that an extender refused; without events, the flush

    def __init__(self) -> None:
        super().__init__()
        self.status, self.only = 200, ""
        self.world.extender = self.extender

    @rule(status=st.sampled_from([200, 200, 200, 500]), only=st.sampled_from(["", "bind", "preempt"]))
    def extender_fails_or_works(self, status: int, only: str) -> None:
        self.status, self.only = status, only

    def extender(self, ask: Ask) -> Result:
        if self.status != 200 and (self.only == "" or ask.verb == self.only):
            return Result(ask.id, self.status)
        match ask.verb:
            case "filter":
                left = [name for name in ask.nodes if name != "b" or ask.pod.name != "p1"]
                body: Any = {"nodenames": left, "FailedNodes": {name: "no" for name in ask.nodes if name not in left}}
            case "prioritize":
                body = [{"Host": name, "Score": 3} for name in ask.nodes]
            case "preempt":
                victims = {name: {"Pods": [{"UID": pod.uid} for pod in v.pods]} for name, v in ask.victims.items()}
                body = {"NodeNameToMetaVictims": victims}
            case _:
                body = {}
        return Result(ask.id, 200, body=body)

    def teardown(self) -> None:
        self.status = 200
        super().teardown()

    def nobody_starves(self, unit: Unit) -> None:
        if "default/p1" not in [pod.key for pod in unit.pods.values()]:
            super().nobody_starves(unit)


@pytest.mark.parametrize("kind", [Storm, StormWithExtender])
@pytest.mark.parametrize("name", GANGS)
def test_a_storm_can_place_a_group(kind: type[Storm], name: str) -> None:
    """Without groups the invariant about groups would prove nothing."""
    storm = kind()
    storm.node("c", 4, taint=False)
    storm.whole_gang(name, "100m", 0, "")
    storm.steps()
    storm.holds()
    assert storm.groups_placed == {name}


def test_nodes_that_a_partially_bound_group_is_nominated_to_stay_its_own() -> None:
    """Nobody starves here: the room is kept for two members of a group whose third is bound."""
    storm = Storm()
    storm.some_pods(["100m", "100m"])
    storm.whole_gang("h", "1", 1, "3")
    storm.node_goes("b")
    storm.holds()
    storm.somebody_else_binds("h1", "b")
    storm.holds()
    storm.whole_gang("g", "100m", 0, "")
    storm.holds()
    storm.teardown()
    assert {pod.name for pod in storm.world.pods() if pod.nominated_node} == {"h0", "h2"}


TestStorm = Storm.TestCase
TestStormWithExtender = StormWithExtender.TestCase
# A storm is fifty steps, with everything looked at after each of them: two hundred take minutes.
TestStorm.settings = TestStormWithExtender.settings = at_most(200)

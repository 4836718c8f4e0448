"""Anything may happen, in any order: what must hold holds after every step, and in the end nobody starves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stowplan.engine import gang
from stowplan.engine.placing import assumed
from stowplan.engine.unit import Unit
from stowplan.framework.search import Search
from stowplan.framework.settings import Extender
from stowplan.objects.actions import Action, Ask, Bind, Evict
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from tests.builders import a_node, a_pod
from tests.engine.policies import Gangs, Patience, profiles
from tests.world import World

NODES = ("a", "b", "c")
NAMES = tuple(f"p{number}" for number in range(8))
GANGS = {"g": 2, "h": 3}


class Storm(RuleBasedStateMachine):
    extenders: tuple[Extender, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        nodes = [a_node("a", cpu=2), a_node("b", cpu=2)]
        named = profiles(postBind=[Gangs()], permit=[Patience()])
        self.world = World(nodes=nodes, profiles=named, answer_within=5, graceful=True, extenders=self.extenders)
        self.world.placed = self.groups_are_never_half_committed
        self.born = 0

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
        extra = {"schedulingGates": [{"name": gate}]} if gate else {}
        labels = {"gang": gang, "min": str(GANGS[gang])} if gang else {}
        labels |= {"patience": patience} if patience else {}
        tolerations = ["t:NoSchedule"] if tolerant else []
        uid = f"{name}-{self.born}"
        pod = a_pod(
            name, uid=uid, cpu=cpu, priority=priority, ports=ports, tolerations=tolerations, labels=labels, **extra
        )
        self.world.submit(pod)

    @rule(gang=st.sampled_from(list(GANGS)), cpu=st.sampled_from(["100m", "1"]))
    def whole_gang(self, gang: str, cpu: str) -> None:
        for name in NAMES[: GANGS[gang]]:
            self.pod(name, cpu, 1, (), "", True, gang, "")

    def _some(self, name: str) -> Pod | None:
        found = self.world.objects.get(("Pod", f"default/{name}"))
        return found if isinstance(found, Pod) else None

    @rule(name=st.sampled_from(NAMES))
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

    @rule(name=st.sampled_from(NAMES), node=st.sampled_from(NODES))
    def somebody_else_binds(self, name: str, node: str) -> None:
        pod = self._some(name)
        if pod is not None and not pod.node_name:
            self.world.submit(assumed(pod, node))

    @rule(status=st.sampled_from([200, None, 409, 429, 500]), kind=st.sampled_from([Bind, Bind, Evict]))
    def server(self, status: int | None, kind: type[Action]) -> None:
        def answer(action: Action) -> Result | None:
            if not isinstance(action, kind) or status == 200:
                return Result(action.id)
            return None if status is None else Result(action.id, status, "no")

        self.world.answers = answer

    @rule(allowed=st.booleans())
    def somebody_decides_about_waiting_pods(self, allowed: bool) -> None:
        for uid, placing in list(self.world.scheduler.placings.items()):
            if placing.permits:
                self.world.allow(uid, "Patience") if allowed else self.world.reject(uid, "Patience", "no")

    @rule()
    def steps(self) -> None:
        self.world.run()

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 7.0, 40.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @invariant()
    def holds(self) -> None:
        self.world.check()

    def groups_are_never_half_committed(self, uids: set[str]) -> None:
        """A step that gave nodes to members of a group gave them to enough, with those that had one before."""
        state = self.world.scheduler.state
        gangs = {state.pods[uid].pod.labels.get("gang", "") for uid in uids} - {""}
        having = Counter(placed.pod.labels.get("gang", "") for placed in state.pods.values())
        for each in gangs:
            assert having[each] >= GANGS[each], f"only {having[each]} of group {each}"

    settles_in = 40.0  # seconds: longer than any backoff, much shorter than the flush

    def teardown(self) -> None:
        """With a server that answers, every unit that has a place gets one soon: woken, not flushed."""
        self.world.answers = lambda action: Result(action.id)
        self.world.advance(self.settles_in)
        self.those_on_their_way_out_are_gone()
        self.world.advance(self.settles_in)
        self.world.check()
        waiting = [placing.pod.labels.get("patience") for placing in self.world.scheduler.placings.values()]
        assert all(waiting), "still under way, and not because of a permit"
        for unit in self.world.scheduler.queue.units.values():
            complete = unit.gate is None or len(unit.pods) >= unit.needed
            if complete and not any(pod.spec.scheduling_gates for pod in unit.pods.values()):
                self.nobody_starves(unit)

    def nobody_starves(self, unit: Unit) -> None:
        scheduler, dice = self.world.scheduler, np.random.default_rng(0)
        impatient = any("patience" in pod.labels for pod in unit.pods.values())
        outcome = gang.place(unit, scheduler.state, scheduler.profiles[unit.profile], dice, Search(), {})
        for placing in outcome.placings if outcome.whole else ():
            placing.release()
        assert impatient or not outcome.whole, f"{[*unit.pods]} could run and are {unit.stage}"


class StormWithExtender(Storm):
    """The same with an HTTP extender that refuses a node to some, scores the rest, binds, and sometimes fails."""

    extenders = (
        Extender(url_prefix="http://one", filter_verb="f", prioritize_verb="p", weight=1, node_cache_capable=True),
        Extender(url_prefix="http://two", preempt_verb="e", bind_verb="b", ignorable=True, node_cache_capable=True),
    )
    settles_in = 400.0  # what an extender refused may be woken by anything, but if nothing happens only by the flush

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.world.extender = self.extender

    @rule(status=st.sampled_from([200, 200, 200, 500]))
    def extender_fails_or_works(self, status: int) -> None:
        self.status = status

    def extender(self, ask: Ask) -> Result:
        if self.status != 200:
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


TestStorm = Storm.TestCase
TestStormWithExtender = StormWithExtender.TestCase

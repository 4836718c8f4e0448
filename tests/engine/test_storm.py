"""Anything may happen, in any order: what must hold holds after every step, and in the end nobody starves."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stowplan.engine.placing import assumed
from stowplan.framework.evaluate import schedule_one
from stowplan.objects.actions import Action, Bind
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from tests.builders import a_node, a_pod
from tests.world import World

NODES = ("a", "b", "c")
NAMES = tuple(f"p{number}" for number in range(8))


class Storm(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(nodes=[a_node("a", cpu=2), a_node("b", cpu=2)], answer_within=5)
        self.crowded: set[str] = set()  # nodes that somebody else may have overfilled
        self.born = 0

    @initialize(cpus=st.lists(st.sampled_from(["100m", "1", "2"]), min_size=2, max_size=6))
    def some_pods(self, cpus: list[str]) -> None:
        for name, cpu in zip(NAMES, cpus, strict=False):
            self.pod(name, cpu, 0, (), "", False)

    @rule(name=st.sampled_from(NODES), cpu=st.integers(1, 4), taint=st.booleans())
    def node(self, name: str, cpu: int, taint: bool) -> None:
        self.crowded.add(name)
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
    )
    def pod(self, name: str, cpu: str, priority: int, ports: Any, gate: str, tolerant: bool) -> None:
        if ("Pod", f"default/{name}") in self.world.objects:
            return
        self.born += 1
        extra = {"schedulingGates": [{"name": gate}]} if gate else {}
        tolerations = ["t:NoSchedule"] if tolerant else []
        uid = f"{name}-{self.born}"
        self.world.submit(
            a_pod(name, uid=uid, cpu=cpu, priority=priority, ports=ports, tolerations=tolerations, **extra)
        )

    def _some(self, name: str) -> Pod | None:
        found = self.world.objects.get(("Pod", f"default/{name}"))
        return found if isinstance(found, Pod) else None

    @rule(name=st.sampled_from(NAMES))
    def pod_goes(self, name: str) -> None:
        pod = self._some(name)
        if pod is not None:
            self.world.delete(pod)

    @rule(name=st.sampled_from(NAMES), node=st.sampled_from(NODES))
    def somebody_else_binds(self, name: str, node: str) -> None:
        pod = self._some(name)
        if pod is not None and not pod.node_name:
            self.crowded.add(node)
            self.world.submit(assumed(pod, node))

    @rule(status=st.sampled_from([200, None, 409, 429, 500]))
    def server(self, status: int | None) -> None:
        def answer(action: Action) -> Result | None:
            if not isinstance(action, Bind) or status == 200:
                return Result(action.id)
            return None if status is None else Result(action.id, status, "no")

        self.world.answers = answer

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

    @invariant()
    def nothing_is_over_committed(self) -> None:
        table = self.world.scheduler.state.table
        for name, row in table.row_of.items():
            if name not in self.crowded and table.live[row]:
                assert table.requested["cpu"][row] <= table.allocatable["cpu"][row], name

    def teardown(self) -> None:
        """With a server that answers, every pod that has a place gets one soon: woken, not flushed."""
        self.world.answers = lambda action: Result(action.id)
        self.world.advance(40)
        self.world.check()
        assert not self.world.scheduler.placings
        for unit in self.world.scheduler.queue.units.values():
            for pod in unit.pods.values():
                profile = self.world.scheduler.profiles[unit.profile]
                decision = schedule_one(pod, self.world.scheduler.state, profile)
                assert decision.node is None, f"{pod.name} could run on {decision.node} and is {unit.stage}"


TestStorm = Storm.TestCase

"""A model of everything that disturbs groups: users, controllers, kubelets, nodes, and an API server that fails.
`test_groups_storm` runs the rules in any order. A rule that may cost a group members or room reports that to
`group_history` first.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from stowplan.objects.actions import Action, Bind, Evict, Nominate, Read, SetCondition
from stowplan.objects.changes import Result
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_budget, a_node, a_pod
from stowplan.testing.world import World
from tests.engine.groups.group_definitions import (
    MINIMA,
    WITH_OBJECTS,
    Wanted,
    a_member,
    group_object,
    minimum_of,
    name_of,
)
from tests.engine.groups.group_history import GroupHistory
from tests.plugins.nodes.coscheduling.pod_groups import created, profiles
from tests.plugins.nodes.resource_reservation.reservations import a_reservation

NODES = ("n0", "n1", "n2", "n3", "n4")
MATCHES = ("waiting-and-running", "only-waiting", "once-satisfied")
DONE = "done, but the answer is lost"
failures = st.sampled_from((500, 404, 409, 503, None, DONE))
names, nodes, anyone = st.sampled_from(list(MINIMA)), st.sampled_from(NODES), st.integers(0, 19)


class GroupDisturbances(RuleBasedStateMachine):
    args: ClassVar[dict[str, Any]] = {}

    @initialize(match=st.sampled_from(MATCHES))
    def begin(self, match: str) -> None:
        self.history = GroupHistory(match)
        arguments = {"matchPolicy": match, "starvationSeconds": 60, **self.args}
        machines = [a_node(name, cpu=2) for name in NODES[:4]]
        self.world = World(
            nodes=machines, profiles=profiles(arguments, "ResourceReservation"), answer_within=5, graceful=True,
            kubelets=True, report=self.history.reported,
        )  # fmt: skip
        self.history.watch(self.world)
        self.world.answers = self._answer
        self.wanted: dict[str, Wanted] = {}
        self.born = 0
        self.failing: tuple[type[Action], int | str | None, int, int] = (Bind, 500, 0, 0)

    # -- users and controllers

    @rule(
        name=names, more=st.integers(0, 2), priority=st.integers(0, 2), cpu=st.integers(1, 2), stable=st.booleans(),
        through=st.sampled_from((9, 9, 1, 2)), how=failures,
    )  # fmt: skip
    def gang_comes(
        self, name: str, more: int, priority: int, cpu: int, stable: bool, through: int, how: int | str | None
    ) -> None:
        """Create a group. The binding of one of its pods may fail, after so many that succeed."""
        if name in self.wanted or any(name_of(pod) == name for pod in self.world.pods()):
            return
        if name in WITH_OBJECTS:
            self.world.submit(group_object(name, MINIMA[name], cpu))
        self.wanted[name] = Wanted(name, MINIMA[name] + more, priority, cpu, stable)
        self._make_pods(name)
        if through < 9:
            self.failing = (Bind, how, through, 1)
            self.world.run()

    @precondition(lambda self: self.wanted)
    @rule(which=anyone)
    def gang_goes(self, which: int) -> None:
        name = self._gang(which)
        self.history.acted("all of it deleted", [name])
        self.wanted.pop(name, None)
        self.world.delete(*(pod for pod in self.world.pods() if name_of(pod) == name))

    def _gang(self, which: int) -> str:
        return sorted(self.wanted)[which % len(self.wanted)]

    @precondition(lambda self: self.wanted)
    @rule()
    def controllers_act(self) -> None:
        for name in list(self.wanted):
            self._make_pods(name)

    def _make_pods(self, name: str) -> None:
        """Create a pod for each missing member. A pod that succeeded is not created again."""
        wanted, mine = self.wanted[name], [pod for pod in self.world.pods() if name_of(pod) == name]
        taken = {pod.labels["place"] for pod in mine if not pod.terminating and pod.status.phase != "Failed"}
        used = {pod.name for pod in mine}
        for number in range(wanted.count):
            self.born += 1
            pod = a_member(wanted, number, self.born, self.world.now)
            if str(number) not in taken and pod.name not in used:
                self.world.submit(pod)

    @rule(priority=st.integers(0, 3), cpu=st.integers(1, 2), app=st.sampled_from(("", "x")))
    def pod_comes(self, priority: int, cpu: int, app: str) -> None:
        self.born += 1
        labels = {"app": app} if app else {}
        pod = created(a_pod(f"p{self.born}", priority=priority, cpu=cpu, labels=labels), int(self.world.now))
        self.world.submit(pod)

    @rule(which=anyone)
    def pod_goes(self, which: int) -> None:
        pod = _one_of(self.world.pods(), which)
        if pod is not None:
            self._lost(pod, "deleted")
            self.world.delete(pod)

    @rule(which=anyone, phase=st.sampled_from(("Succeeded", "Failed")))
    def pod_ends(self, which: int, phase: str) -> None:
        pod = _one_of([pod for pod in self.world.pods() if pod.node_name and not pod.finished], which)
        if pod is not None:
            self._lost(pod, phase)
            status = msgspec.structs.replace(pod.status, phase=phase)
            self.world.submit(msgspec.structs.replace(pod, status=status))

    def _lost(self, pod: Pod, how: str) -> None:
        if name_of(pod) and not pod.terminating and not pod.finished:
            self.history.acted(f"{pod.name} {how}", [name_of(pod)])

    @precondition(lambda self: bool(set(WITH_OBJECTS) & set(self.wanted)))
    @rule(which=anyone, minimum=st.integers(0, 4))
    def pod_group_changes_or_goes(self, which: int, minimum: int) -> None:
        there = sorted(set(WITH_OBJECTS) & set(self.wanted))
        name = there[which % len(there)]
        before = minimum_of(name, self.world.objects)
        if before is None or not minimum or minimum > before:
            self.history.acted(f"needs {minimum}" if minimum else "its PodGroup deleted", [name])
        made = group_object(name, minimum, self.wanted[name].cpu)
        self.world.submit(made) if minimum else self.world.delete(made)

    @rule(app=st.sampled_from(("x", "g", "k")), allowed=st.integers(-1, 2))
    def budget(self, app: str, allowed: int) -> None:
        budget = a_budget(app, allowed=max(allowed, 0), app=app)
        self.world.delete(budget) if allowed < 0 else self.world.submit(budget)

    @rule(node=nodes, there=st.booleans())
    def room_is_kept(self, node: str, there: bool) -> None:
        self.history.acted("room kept for others")
        kept: Object = a_reservation("kept", one=(node, {"cpu": "1"}))
        self.world.submit(kept) if there else self.world.delete(kept)

    # -- nodes

    @rule(name=nodes, cpu=st.integers(1, 4))
    def node_comes_or_changes(self, name: str, cpu: int) -> None:
        before, made = self.world.objects.get(("Node", name)), a_node(name, cpu=cpu)
        if isinstance(before, Node) and int(str(before.status.allocatable["cpu"])) > cpu:
            self.history.acted(f"{name} shrunk")
        self.world.submit(made)

    @rule(name=nodes, with_pods=st.booleans())
    def node_goes(self, name: str, with_pods: bool) -> None:
        self.history.acted(f"{name} gone")
        self.world.delete(a_node(name))
        if with_pods:
            self._clean_up()

    @rule()
    def kubelets_let_go(self) -> None:
        self.world.delete(*(pod for pod in self.world.pods() if pod.terminating))

    def _clean_up(self) -> None:
        """Delete the pods of deleted nodes."""
        there = {each.name for each in self.world.objects.values() if isinstance(each, Node)}
        for pod in self.world.pods():
            if pod.node_name and pod.node_name not in there:
                self._lost(pod, "lost with its node")
                self.world.delete(pod)

    # -- the server

    @rule(
        kind=st.sampled_from((Bind, Bind, Bind, Evict, SetCondition, Nominate, Read)),
        how=failures,
        spared=st.integers(0, 2),
        times=st.integers(1, 4),
    )
    def server_fails(self, kind: type[Action], how: int | str | None, spared: int, times: int) -> None:
        """Fail some of the next requests, after a few that succeed."""
        if kind is not Read or how not in (404, DONE):  # it does not deny what it has
            self.failing = (kind, how, spared, times)

    def _answer(self, action: Action) -> Result | None:
        self.history.asked(action)
        kind, how, spared, times = self.failing
        if not isinstance(action, kind) or not times:
            return Result(action.id)
        self.failing = (kind, how, max(spared - 1, 0), times if spared else times - 1)
        if spared:
            return Result(action.id)
        if how == DONE:
            self.world.perform(action)
        return Result(action.id, how, "not now") if isinstance(how, int) else None

    @rule()
    def scheduler_dies(self) -> None:
        self.world.restart()
        self.history.restarted()

    @rule()
    def news_are_late(self) -> None:
        """Pause the watch: answers come before the changes are seen."""
        self.world.pause_watch()
        self.world.checks = False
        self.world.run()
        self.world.checks = True
        self.world.resume_watch()

    @rule(seconds=st.sampled_from((0.5, 2, 12, 40)))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)


def _one_of(pods: list[Pod], which: int) -> Pod | None:
    return sorted(pods, key=lambda pod: pod.uid)[which % len(pods)] if pods else None

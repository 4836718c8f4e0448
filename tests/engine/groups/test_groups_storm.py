"""Groups of every kind, single pods, reservations, budgets, evictions, failures and restarts, in any order.

After each step the invariants of `stowplan.testing` hold. Also, a step gives nodes to enough members of a group or to
none, preemption for a group stays within disruption budgets, and no group that was whole is evicted. At the end, after
enough time without failures: a group is whole or unbound, or is missing what others took from it (`group_history`);
pods were evicted only for groups that ran; no pod waits that fits or that preemption would help; no room is held for
groups that do not need it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stowplan.engine.attempt import placer as placing
from stowplan.engine.unit import QueueStage, Unit
from stowplan.objects.actions import Evict
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.groups.group_definitions import MINIMA
from tests.engine.groups.group_disturbances import GroupDisturbances
from tests.hypothesis_settings import at_most
from tests.plugins.nodes.coscheduling.pod_groups import NAME, created, gang, member, profiles, running


class GangStorm(GroupDisturbances):
    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.failing = (Evict, 500, 0, 0)
        self.settle(40)
        for unit in self.world.scheduler.queue.units.values():
            self.no_unit_waits_that_fits(unit)
        self.settle(400)  # longer than any pod waits to be requeued
        self.history.check()
        self.nothing_is_left_over()
        for unit in self.world.scheduler.queue.units.values():
            self.no_unit_waits_that_fits(unit)
            self.no_unit_waits_that_preemption_could_help(unit)

    def settle(self, seconds: float) -> None:
        """Run kubelets and controllers until nothing changes."""
        for _ in range(30):
            before = self._so_far()
            self.world.advance(seconds)
            self.kubelets_let_go()
            self._clean_up()
            self.controllers_act()
            if before == self._so_far():
                return
        raise AssertionError("it never comes to rest")

    def _so_far(self) -> tuple[int, int, set[str]]:
        return self.history.evictions, len(self.world.bound), {pod.uid for pod in self.world.pods()}

    def no_unit_waits_that_fits(self, unit: Unit) -> None:
        scheduler, name = self.world.scheduler, unit.group.removeprefix("default/")
        if name in MINIMA and unit.stage is QueueStage.GATED:
            waiting = [pod for pod in self.history.members(name) if not pod.node_name]
            complete = self.history.minimum(name) is not None and len(waiting) >= self.history.lacks(name)
            assert not complete, f"{name} is gated, and {len(waiting)} pods are enough"
            return
        placer = placing.Placer(scheduler.state, np.random.default_rng(0))
        outcome = placer.place(unit, scheduler.profiles[unit.profile], {})
        for each in outcome.assumed_pods if outcome.whole else ():
            each.release()
        assert not outcome.whole, f"{[*unit.pods]} could run and are {unit.stage}"

    def no_unit_waits_that_preemption_could_help(self, unit: Unit) -> None:
        scheduler = self.world.scheduler
        if unit.group and unit.stage is not QueueStage.GATED:
            placer = placing.Placer(scheduler.state, np.random.default_rng(0))
            plan = scheduler.preemption.plan(unit, scheduler.profiles[unit.profile], placer)
            assert plan is None, f"{[pod.name for pod in plan.victims]} could be evicted for {unit.group}"

    def nothing_is_left_over(self) -> None:
        self.world.check()
        scheduler = self.world.scheduler
        assert not scheduler.assumed_pods
        assert not [group for group, party in scheduler.binding.together.items() if len(party)]
        kept = ("ResourceReservation", "default/kept") in self.world.objects
        assert len(scheduler.state.held) <= kept


class EvictingGangStorm(GangStorm):
    args: ClassVar[dict[str, Any]] = {"onPartialBind": "Evict"}


TestGangStorm = GangStorm.TestCase
TestEvictingGangStorm = EvictingGangStorm.TestCase
# More would take minutes; each must be set by its own name, since pytest runs whatever else is called a test case here.
TestGangStorm.settings = TestEvictingGangStorm.settings = at_most(200)


@given(
    free=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    lesser=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=10),
    wanted=st.lists(st.integers(1, 3), min_size=2, max_size=5),
    gangs=st.lists(st.integers(2, 3), max_size=2),
)
def test_no_pod_is_evicted_for_a_group_that_then_does_not_run(
    free: list[int], lesser: list[tuple[int, int]], wanted: list[int], gangs: list[int]
) -> None:
    """Nodes with pods and groups of all sizes, and one group of a higher priority."""
    world = World(nodes=[a_node(f"n{at}", cpu=3 + more) for at, more in enumerate(free)], profiles=profiles())
    world.submit(
        *(created(a_pod(f"p{at}", cpu=cpu, priority=priority), 0) for at, (cpu, priority) in enumerate(lesser))
    )
    for at, size in enumerate(gangs):
        world.submit(*gang(f"lesser{at}", size, priority=5, at=1))
    world.advance(5)
    before = running(world)
    labels = {NAME: "g", "pod-group.scheduling.kubenexus.io/min-available": str(len(wanted))}
    world.submit(*(member(f"g-{at}", labels, cpu=cpu, priority=50) for at, cpu in enumerate(wanted)))
    world.advance(60)
    evicted = [action for action in world.actions if isinstance(action, Evict)]
    after = running(world)
    assert after.get("g", 0) in (0, len(wanted))
    assert not evicted or after["g"] == len(wanted)
    for at, size in enumerate(gangs):
        assert after.get(f"lesser{at}", 0) in (0, size), (before, after)

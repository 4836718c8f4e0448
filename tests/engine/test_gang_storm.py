"""Gangs, single pods, evictions, failing bindings and restarts in any order.

What the engine's own storm checks after each step holds here, too (`tests/invariants.py`). Besides: no step of ours
binds or evicts a part of a gang such that fewer than its minimum are left; when the storm is over, each gang runs whole
or not at all; and nobody is evicted for a gang that then does not run.
"""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from stowplan.objects.actions import Action, Bind, Evict
from stowplan.objects.changes import Result
from tests.builders import a_node, a_pod
from tests.plugins.nodes.gangs import NAME, a_world, created, gang, member, profiles, running
from tests.world import World

GANGS = {"g": 2, "h": 3, "k": 4}


class GangStorm(RuleBasedStateMachine):
    args: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.world = a_world(nodes=4, cpu=2, args=self.args, answer_within=5, graceful=True)
        self.born = 0
        self.disturbed: set[str] = set()  # gangs that lost a member by somebody else's doing
        self.failing = 0
        self.world.answers = self._answer

    def _answer(self, action: Action) -> Result | None:
        if isinstance(action, Bind | Evict) and self.failing:
            self.failing -= 1
            return Result(action.id, 500, "not now") if self.failing % 2 else None
        return Result(action.id)

    @rule(name=st.sampled_from(list(GANGS)), priority=st.integers(0, 2), more=st.integers(0, 2), cpu=st.integers(1, 2))
    def gang_comes(self, name: str, priority: int, more: int, cpu: int) -> None:
        if any(pod.labels.get(NAME) == name for pod in self.world.pods()):
            return
        self.disturbed.discard(name)
        self.born += 1
        pods = gang(
            name, GANGS[name] + more, GANGS[name], at=self.born, first=self.born * 10, priority=priority, cpu=cpu
        )
        self.world.submit(*pods)

    @rule(priority=st.integers(0, 3), cpu=st.integers(1, 2))
    def pod_comes(self, priority: int, cpu: int) -> None:
        self.born += 1
        self.world.submit(created(a_pod(f"p{self.born}", priority=priority, cpu=cpu), self.born))

    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        pods = sorted(self.world.pods(), key=lambda pod: pod.name)
        if pods:
            gone = data.draw(st.sampled_from(pods))
            if not gone.terminating:
                self.disturbed.add(gone.labels.get(NAME, ""))
            self.world.delete(gone)

    @rule(name=st.sampled_from(["n0", "n4", "n5"]), cpu=st.integers(1, 4))
    def node_comes(self, name: str, cpu: int) -> None:
        self.world.submit(a_node(name, cpu=cpu))

    @rule(times=st.integers(1, 4))
    def the_server_has_a_bad_moment(self, times: int) -> None:
        self.failing = times

    @rule()
    def the_scheduler_dies(self) -> None:
        """Groups that it was just evicting are never told to go again."""
        self.disturbed |= {pod.labels.get(NAME, "") for pod in self.world.pods() if pod.terminating}
        self.world.restart()

    @rule(seconds=st.sampled_from([0.5, 2, 12]))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    def teardown(self) -> None:
        """Quiet again, evicted pods gone, and time for everybody: no gang is left half."""
        self.failing = 0
        for _ in range(6):
            self.world.advance(40)
            self.world.delete(*(pod for pod in self.world.pods() if pod.terminating))
        self.world.advance(400)
        for name, count in running(self.world).items():
            if name in GANGS and name not in self.disturbed:
                assert count >= GANGS[name] or self._may_be_completed(name), f"{name}: {running(self.world)}"

    def _may_be_completed(self, name: str) -> bool:
        """Members are missing that have no room any more, because more important pods came in between."""
        missing = [pod for pod in self.world.pods() if pod.labels.get(NAME) == name and not pod.node_name]
        return bool(missing) and "bound or about to be" in "".join(self.world.said(missing[0].name))


class EvictingGangStorm(GangStorm):
    args: ClassVar[dict[str, Any]] = {"onPartialBind": "Evict"}


TestGangStorm = GangStorm.TestCase
TestEvictingGangStorm = EvictingGangStorm.TestCase


@given(
    free=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    lesser=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=10),
    wanted=st.lists(st.integers(1, 3), min_size=2, max_size=5),
    gangs=st.lists(st.integers(2, 3), max_size=2),
)
def test_nobody_is_evicted_for_a_gang_that_then_does_not_run(
    free: list[int], lesser: list[tuple[int, int]], wanted: list[int], gangs: list[int]
) -> None:
    """Some nodes, pods and gangs of all sizes on them, and one gang that matters more than all of them."""
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

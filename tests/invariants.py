"""What must hold in a `World` after every step, whatever happened."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stowplan.columns.state import ClusterState
from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.objects.changes import Put
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from tests.builders import a_pod
from tests.columns.held.moves import carry_moves
from tests.columns.model import asked, contents, differences

if TYPE_CHECKING:
    from tests.world import World

PROBE = a_pod("probe", cpu=1)


def check(world: World) -> None:
    check_nothing_lost(world)
    check_nothing_bound_twice(world)
    check_reserved(world)
    check_columns(world)
    check_assumed(world)
    check_nothing_left_behind(world)
    check_nothing_negative(world)


def check_nothing_lost(world: World) -> None:
    """Every pending pod of ours is in the queue or on its way to a node, and in one of them only."""
    queued = [uid for unit in world.scheduler.queue.units.values() for uid in unit.pods]
    on_the_way = set(world.scheduler.assumed_pods)
    assert len(queued) == len(set(queued)), "a pod in two units"
    assert not on_the_way & set(queued), "a pod both queued and on its way"
    for pod in world.pods():
        ours = pod.scheduler_name in world.scheduler.profiles
        if ours and not pod.node_name and not pod.terminating and not pod.finished:
            assert pod.uid in queued or pod.uid in on_the_way, f"{pod.name} was lost"


def check_nothing_bound_twice(world: World) -> None:
    twice = [uid for uid, times in Counter(world.bound).items() if times > 1]
    assert not twice, f"bound twice: {twice}"


def check_reserved(world: World) -> None:
    """The one state holds what is bound and what is on its way, and nothing else."""
    bound = {pod.uid for pod in world.pods() if pod.node_name and not pod.finished}
    assert set(world.scheduler.state.pods) == bound | set(world.scheduler.assumed_pods)
    for placing in world.scheduler.assumed_pods.values():
        assert placing.step is not BindStep.RESERVED, "a placing that nobody moves on"


def check_columns(world: World) -> None:
    """The columns are what they would be if built anew from the server's objects and what is on its way."""
    rebuilt = ClusterState()
    for profile in world.scheduler.profiles.values():
        profile.attach(rebuilt)
    for each in world.objects.values():
        rebuilt.apply(Put(each))
    for placing in world.scheduler.assumed_pods.values():
        if placing.pod.uid not in rebuilt.pods:
            rebuilt.add_pod(placing.pod, placing.node_name)
    state = world.scheduler.state
    for reservation in state.store.every(ResourceReservation).values():
        if reservation.owner in world.scheduler.assumed_pods:  # it is about to be written
            rebuilt.put(reservation)
    carry_moves(state, rebuilt)
    questions, keys = asked(state), ("zone",)
    mine, fresh = (contents(each, questions, keys, PROBE) for each in (state, rebuilt))
    for differing in (mine, fresh):
        differing.pop("nominated", None)  # a promise may be made before the server knows, and be kept after
        for uid in world.scheduler.assumed_pods:  # what the pod itself looks like may be known to one side only
            _, node = differing["pods by uid"][uid]
            differing["pods by uid"][uid] = differing["pods"][node][uid] = (uid, node)
    assert list(differences(mine, fresh)) == []


def check_assumed(world: World) -> None:
    """Beneath what is assumed of claims and volumes is what the server has, and only pods on their way assume."""
    state = world.scheduler.state
    assert state.assumed.holders() <= set(world.scheduler.assumed_pods), "assumed for a pod that is not on its way"
    for kind in (PersistentVolume, PersistentVolumeClaim):
        there = {key: each for (name, key), each in world.objects.items() if name == kind.__name__}
        assert set(state.store.every(kind)) == set(there)
        for key, each in there.items():
            seen = state.store.get(kind, key)
            assert state.assumed.actual(kind, key) == each
            assert seen is not None and (state.assumed.unconfirmed(each) or seen == each), f"{key} is not as it is"
    waits = world.scheduler.binding.waits
    assert set(waits.waiting) <= set(world.scheduler.assumed_pods), "a pod waits that is not assumed"
    assert waits.to_ask.keys() <= waits.waiting.keys()
    for uid in waits.waiting:
        assert world.scheduler.assumed_pods[uid].step is BindStep.PRE_BINDING


def check_nothing_left_behind(world: World) -> None:
    """Nothing is remembered of pods that are gone, and of events that nobody missed."""
    scheduler = world.scheduler
    existing = {pod.uid for pod in world.pods()}
    queued = {uid for unit in scheduler.queue.units.values() for uid in unit.pods}
    assert set(scheduler.pods) <= existing
    assert set(scheduler.queue.unit_of) == queued
    assert {uid for pods in scheduler.state.nominated_pods.by_node.values() for uid in pods} <= existing
    flying = {key for key, stage in scheduler.queue.stages() if stage is QueueStage.IN_FLIGHT}
    waiting = any(placing.step is BindStep.WAITING for placing in scheduler.assumed_pods.values())
    assert flying <= set(scheduler.attempts.rounds.asking) or scheduler.attempts.rounds.answered, (
        "in flight, and nobody at it"
    )
    if not flying and not waiting:
        assert not scheduler.queue.inflight.units and not scheduler.queue.inflight.remembered


def check_nothing_negative(world: World) -> None:
    for resource, column in world.scheduler.state.table.requested.items():
        assert (column >= 0).all(), f"less than no {resource} is taken, or held"


def check_node(world: World, name: str, bound: Pod) -> None:
    """We bound a pod: the node must have what the pod asks for, unless others took it in the meantime."""
    node = world.objects.get(("Node", name))
    if not isinstance(node, Node) or name in world.crowded | world.unsettled:
        return
    state = ClusterState()
    for each in (node, *(pod for pod in world.pods() if pod.node_name == name)):
        state.apply(Put(each))
    row = state.table.row_of[name]
    for resource in bound.shape.request:
        taken, offered = state.table.requested[resource], state.table.allocatable.get(resource)
        there = 0 if offered is None else int(offered[row])
        assert int(taken[row]) <= there or not int(taken[row]), f"{name} is over-committed: {resource}"

"""What must hold in a `World` after every step, whatever happened before."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stowplan.columns.devices.classes import ClassesOfResources
from stowplan.columns.state import ClusterState
from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.objects.changes import Put
from stowplan.objects.devices import DeviceClass
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from stowplan.testing.builders import a_pod
from stowplan.testing.comparison import contents, differences

if TYPE_CHECKING:
    from stowplan.testing.world import World

PROBE = a_pod("probe", cpu=1)


def check(world: World) -> None:
    """Check all of the following."""
    check_no_pod_lost(world)
    check_no_pod_bound_twice(world)
    check_assumed_pods(world)
    check_columns(world)
    check_assumed_objects(world)
    check_nothing_left_behind(world)
    check_nothing_negative(world)


def check_no_pod_lost(world: World) -> None:
    """Every pending pod with a profile is either in the queue or assumed, and in one unit."""
    queued = [uid for unit in world.scheduler.queue.units.values() for uid in unit.pods]
    assumed = set(world.scheduler.assumed_pods)
    assert len(queued) == len(set(queued)), "a pod is in two units"
    assert not assumed & set(queued), "a pod is queued and assumed"
    for pod in world.pods():
        ours = pod.scheduler_name in world.scheduler.profiles
        if ours and not pod.node_name and not pod.terminating and not pod.finished:
            assert pod.uid in queued or pod.uid in assumed, f"{pod.name} was lost"


def check_no_pod_bound_twice(world: World) -> None:
    """No pod was bound twice."""
    twice = [uid for uid, times in Counter(world.bound).items() if times > 1]
    assert not twice, f"bound twice: {twice}"


def check_assumed_pods(world: World) -> None:
    """The cluster state has the bound and the assumed pods on nodes, and no others. No binding cycle stands still."""
    bound = {pod.uid for pod in world.pods() if pod.node_name and not pod.finished}
    assert set(world.scheduler.state.pods) == bound | set(world.scheduler.assumed_pods)
    for each in world.scheduler.assumed_pods.values():
        assert each.step is not BindStep.RESERVED, f"{each.pod.name} is reserved, and nothing follows"


def check_columns(world: World) -> None:
    """The columns are what they would be if built again from the API server's objects and the assumed pods."""
    rebuilt = ClusterState()
    for profile in world.scheduler.profiles.values():
        profile.attach(rebuilt)
    for each in world.objects.values():
        rebuilt.apply(Put(each))
    for assumed_pod in world.scheduler.assumed_pods.values():
        if assumed_pod.uid not in rebuilt.pods:
            rebuilt.add_pod(assumed_pod.pod, assumed_pod.node_name)
    state = world.scheduler.state
    for reservation in state.store.every(ResourceReservation).values():
        if reservation.owner in world.scheduler.assumed_pods:  # the API server does not have it yet
            rebuilt.put(reservation)
    for kind, room in state.held_rooms.items():
        rebuilt.held_rooms[kind].copy_moves(room)
    questions, sums, keys = state.match_counts.questions, state.match_counts.sums, ("zone",)
    mine, fresh = (contents(each, questions, keys, PROBE, sums) for each in (state, rebuilt))
    for differing in (mine, fresh):
        differing.pop("nominated", None)  # may be made before the API server has it, and dropped before it has that
        for uid in world.scheduler.assumed_pods:  # the pod itself may be of another version
            _, node = differing["pods by uid"][uid]
            differing["pods by uid"][uid] = differing["pods"][node][uid] = (uid, node)
    assert list(differences(mine, fresh)) == []


def check_assumed_objects(world: World) -> None:
    """Beneath assumed claims and volumes are those of the API server. Only assumed pods assume them, and wait."""
    state = world.scheduler.state
    assert state.assumed.holders() <= set(world.scheduler.assumed_pods), "assumed for a pod that is not assumed"
    for kind in (PersistentVolume, PersistentVolumeClaim):
        there = {key: each for (name, key), each in world.objects.items() if name == kind.__name__}
        assert set(state.store.every(kind)) == set(there)
        for key, each in there.items():
            seen = state.store.get(kind, key)
            assert state.assumed.actual(kind, key) == each
            assert seen is not None and (state.assumed.unconfirmed(each) or seen == each), f"{key} differs"
    waits = world.scheduler.binding.waits
    assert waits.to_ask.keys() <= waits.waiting.keys()
    for uid in waits.waiting:
        assert uid in world.scheduler.assumed_pods, "a pod waits that is not assumed"
        assert world.scheduler.assumed_pods[uid].step is BindStep.PRE_BINDING


def check_nothing_left_behind(world: World) -> None:
    """Nothing is kept about pods that do not exist, nor about events that no attempt could have missed."""
    scheduler = world.scheduler
    existing = {pod.uid for pod in world.pods()}
    queued = {uid for unit in scheduler.queue.units.values() for uid in unit.pods}
    assert set(scheduler.pods) <= existing
    assert set(scheduler.queue.unit_of) == queued
    nominated = scheduler.state.nominated_pods
    owners = [nominated.owner_of.get(uid, pod).uid for pods in nominated.by_node.values() for uid, pod in pods.items()]
    assert set(owners) <= existing, "a nomination is left of a pod that does not exist"
    in_flight = {key for key, stage in scheduler.queue.stages() if stage is QueueStage.IN_FLIGHT}
    rounds = scheduler.attempts.rounds
    assert in_flight <= set(rounds.asking) or rounds.answered, "in flight, and not being attempted"
    if not in_flight and all(each.step is not BindStep.WAITING for each in scheduler.assumed_pods.values()):
        assert not scheduler.queue.inflight.units and not scheduler.queue.inflight.remembered


def check_nothing_negative(world: World) -> None:
    """No resource is requested or held by less than nothing."""
    for resource, column in world.scheduler.state.table.requested.items():
        assert (column >= 0).all(), f"{resource} is negative"


def check_node(world: World, name: str, bound: Pod) -> None:
    """The node of a pod that was just bound has what the pod requests, unless others changed the node meanwhile."""
    node = world.objects.get(("Node", name))
    if not isinstance(node, Node) or name in world.overcommitted | world.changed_nodes:
        return
    state = ClusterState()
    for each in (node, *(pod for pod in world.pods() if pod.node_name == name)):
        state.apply(Put(each))
    row = state.table.row_of[name]
    classes = ClassesOfResources(found for found in world.objects.values() if isinstance(found, DeviceClass))
    for resource in bound.shape.request:
        taken, offered = state.table.requested[resource], state.table.allocatable.get(resource)
        there = 0 if offered is None else int(offered[row])
        if not there and classes.of(resource) is not None:
            continue  # devices were allocated instead
        assert int(taken[row]) <= there or not int(taken[row]), f"{name} is over-committed: {resource}"

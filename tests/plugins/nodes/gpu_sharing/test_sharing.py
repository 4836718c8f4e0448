"""GpuSharing: which nodes have GPUs for a pod, and which GPUs it gets."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.evaluation import schedule_one
from stowplan.objects.changes import Gone, Put
from stowplan.objects.gpu_requests import INDEX
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.node_resources_fit import NodeResourcesFit
from stowplan.plugins.nodes.gpu_sharing import device_columns
from stowplan.plugins.nodes.gpu_sharing.sharing import GpuSharing
from stowplan.testing.builders import a_pod, a_profile_of, a_state, rejections
from stowplan.testing.world import World
from tests.plugins.nodes.gpu_sharing.gpu_objects import a_gpu_node, a_gpu_pod

NODES = [a_gpu_node("a"), a_gpu_node("b", 4, "V100", memory=16000), a_gpu_node("none", 0)]
PODS = [
    a_gpu_pod("half", 500, node="a", on="1"),
    a_gpu_pod("most", 900, node="a", on="0"),
    a_gpu_pod("two", 1000, 2, node="b", on="1-3"),
]
PROFILE = a_profile_of(NodeResourcesFit(), GpuSharing())


def free(state: ClusterState) -> dict[str, list[int]]:
    columns = device_columns.of_state(state)
    rows = {name: state.table.row_of[name] for name in sorted(state.table.row_of)}
    return {name: columns.free[row, : columns.number[row]].tolist() for name, row in rows.items()}


@pytest.mark.parametrize(
    ("pod", "reasons"),
    [
        pytest.param(a_pod("cpu"), {}, id="a pod without GPUs may go anywhere"),
        pytest.param(a_gpu_pod("p", 500), {"none": "too few GPUs"}, id="a share fits into what a share left"),
        pytest.param(a_gpu_pod("p", 501), {"a": "Insufficient", "none": "too few"}, id="a larger one does not"),
        pytest.param(a_gpu_pod("p", 1000, 2), {"a": "Insufficient", "none": "too few"}, id="whole GPUs must be empty"),
        pytest.param(a_gpu_pod("p", 1000, 3), {"a": "too few", "b": "Insuff", "none": "too few"}, id="too many GPUs"),
        pytest.param(
            a_gpu_pod("p", 100, models="P100|V100"),
            {"a": "another model", "none": "too few"},
            id="only models that the pod allows",
        ),
        pytest.param(
            a_pod("p", annotations={"gpu-memory": "8000"}),
            {"a": "too little memory", "none": "too few"},
            id="memory, where nodes say how much their GPUs have",
        ),
        pytest.param(a_pod("p", annotations={"gpu-memory": "16001"}), dict.fromkeys("ab", "too little"), id="too much"),
    ],
)
def test_which_nodes_are_rejected(pod: Pod, reasons: dict[str, str]) -> None:
    state = a_state(nodes=NODES, pods=PODS)
    found = rejections(schedule_one(pod, state, PROFILE))
    told = {name: why[2][0] for name, why in found.items() if why is not None}
    assert told.keys() >= reasons.keys()
    assert all(part in told[name] for name, part in reasons.items())
    assert told.keys() <= {*reasons, "none"}


def test_a_pod_with_a_wrong_annotation_is_rejected_with_the_reason() -> None:
    decision = schedule_one(a_pod("p", annotations={"gpu-fraction": "2"}), a_state(nodes=NODES), PROFILE)
    assert "gpu-fraction is '2'" in decision.full_message


@pytest.mark.parametrize(
    ("pod", "node", "devices"),
    [
        pytest.param(a_gpu_pod("p", 100), "a", "0", id="a share: the GPU with the least free"),
        pytest.param(a_gpu_pod("p", 200), "a", "1", id="among those that fit"),
        pytest.param(a_gpu_pod("p", 200), "b", "0", id="the first among equals"),
        pytest.param(a_gpu_pod("p", 1000, 2), "b", "0-2", id="whole GPUs: the first empty ones"),
        pytest.param(a_pod("p", annotations={"gpu-memory": "4000"}), "b", "0", id="memory"),
    ],
)
def test_which_gpus_a_pod_gets(pod: Pod, node: str, devices: str) -> None:
    state, plugin = a_state(nodes=NODES, pods=PODS), GpuSharing()
    before = free(state)
    state.add_pod(pod, node)
    cluster = Cluster(state)
    assert plugin.reserve(pod, node, cluster) is None
    assert plugin.binding_annotations(pod, node, cluster) == {INDEX: devices}
    assert sum(free(state)[node]) < sum(before[node])
    plugin.unreserve(pod, node, cluster)
    state.remove_pod(pod.uid)
    assert free(state) == before
    assert not device_columns.of_state(state).assigned


def test_bindings_carry_the_gpus_and_a_restart_reads_them() -> None:
    world = World(nodes=[a_gpu_node("a", 4)], profiles={"default-scheduler": PROFILE})
    world.submit(*(a_gpu_pod(f"p{at}", milli) for at, milli in enumerate((600, 600, 400, 300))))
    world.run()
    found = {f"p{at}": world.pod(f"p{at}").annotations[INDEX] for at in range(4)}
    assert found == {"p0": "0", "p1": "1", "p2": "0", "p3": "1"}
    before = free(world.scheduler.state)
    assert before == {"a": [0, 100, 1000, 1000]}
    world.restart()
    world.run()
    assert free(world.scheduler.state) == before
    world.submit(a_gpu_pod("two", 1000, 2))
    world.run()
    assert world.pod("two").annotations[INDEX] == "2-3"


def test_what_if_questions_leave_no_trace() -> None:
    state = a_state(nodes=NODES, pods=PODS)
    before = free(state)
    with state.trial() as trial:
        trial.remove_pod(PODS[0].uid)
        trial.add_pod(a_gpu_pod("new", 1000), "b")
        assert free(state) == {"a": [100, 1000], "b": [0, 0, 1000, 0], "none": []}
    assert free(state) == before


def test_a_pod_without_an_annotation_takes_what_it_would_get_now() -> None:
    state = a_state(nodes=NODES, pods=[*PODS, a_gpu_pod("foreign", 300, node="a")])
    assert free(state)["a"] == [100, 200]


def test_nodes_may_come_change_and_go() -> None:
    state = a_state(nodes=NODES, pods=PODS)
    free(state)
    state.apply(Put(a_gpu_node("a", 8, "A10")))
    state.apply(Gone(NODES[1]))
    state.apply(Put(a_gpu_node("c", 1)))
    assert free(state)["a"] == [100, 500, 1000, 1000, 1000, 1000, 1000, 1000]
    assert free(state)["c"] == [1000]
    pod = a_gpu_pod("p", 1000, 1, "A10")
    assert schedule_one(pod, state, PROFILE).node == "a"


def test_columns_kept_over_many_changes_are_those_of_a_new_look() -> None:
    generator, state = np.random.default_rng(1), a_state(nodes=[a_gpu_node(f"n{at}", at % 5) for at in range(20)])
    plugin, placed = GpuSharing(), list[Pod]()
    for number in range(300):
        if placed and generator.random() < 0.4:
            gone = placed.pop(int(generator.integers(len(placed))))
            plugin.unreserve(gone, state.table.names[state.pods[gone.uid].row], Cluster(state))
            state.remove_pod(gone.uid)
            continue
        whole = bool(generator.random() < 0.3)
        pod = a_gpu_pod(f"p{number}", 1000 if whole else int(generator.integers(1, 1000)), 1 + whole)
        node = schedule_one(pod, state, PROFILE, generator).node
        if node is not None:
            state.add_pod(pod, node)
            assert plugin.reserve(pod, node, Cluster(state)) is None
            placed.append(pod)
    kept = free(state)
    columns = device_columns.of_state(state)
    again = device_columns.DeviceColumns(state)
    again.assigned = columns.assigned
    state.table.row_columns[device_columns.KEY] = again
    assert placed
    assert free(state) == kept

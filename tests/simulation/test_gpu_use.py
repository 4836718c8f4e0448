"""GPUs in the figures, in thousandths; the values can be worked out by hand."""

from __future__ import annotations

from typing import Any

from stowplan.framework.profile import Profile
from stowplan.simulation.figures import figures
from stowplan.simulation.run import Simulation
from stowplan.simulation.settings import RunSettings
from stowplan.simulation.stream_events import Arrival
from stowplan.testing import a_profile
from tests.simulation.runs import HEAD, a_cluster

MILLI = "alibabacloud.com/gpu-milli"
NODES = HEAD + (
    "nodes: [{name: g, count: 2, capacity: {cpu: 8, memory: 8Gi, nvidia.com/gpu: 2},"
    " labels: {nvidia.com/gpu.memory: '10000'}}]\n"
)
SHARING = "profiles: [{plugins: {multiPoint: {enabled: [{name: GpuSharing}, {name: GpuPacking, weight: 1000}]}}}]"


def a_pod(name: str, duration: float | None = None, **annotations: str) -> Arrival:
    names = {each.replace("_", "-"): value for each, value in annotations.items()}
    container: dict[str, Any] = {"name": "main", "image": "app"}
    if "whole" in names:
        container["resources"] = {"limits": {"nvidia.com/gpu": names.pop("whole")}}
    metadata = {"name": name, "annotations": names}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    return Arrival(at=0, duration=duration, document=document)


def a_run(*pods: Arrival, profile: Profile | None = None) -> Simulation:
    settings = RunSettings(until=1000, sample_seconds=100)
    profiles = {"default-scheduler": a_profile(SHARING) if profile is None else profile}
    run = Simulation(a_cluster(NODES.encode(), settings), pods, profiles, settings)
    run.run()
    return run


def test_shares_count_in_thousandths_of_all_gpus() -> None:
    """300 of 4000 for half of the time."""
    found = figures(a_run(a_pod("a", 500, gpu_fraction="0.3")))
    assert found["allocation"][MILLI] == found["utilisation"][MILLI] == 0.0375


def test_whole_gpus_count_as_both() -> None:
    found = figures(a_run(a_pod("a", whole="2")))
    assert found["allocation"]["nvidia.com/gpu"] == found["allocation"][MILLI] == 0.5


def test_memory_counts_by_the_gpus_of_the_node() -> None:
    """2,500 of 10,000 MiB are a quarter of one of four GPUs."""
    run = a_run(a_pod("a", gpu_memory="2500"))
    assert figures(run)["allocation"][MILLI] == 0.0625
    (outcome,) = run.recorder.outcomes.values()
    assert outcome.requests[MILLI] == 250


def test_what_is_free_where_no_gpu_has_enough_is_fragmented() -> None:
    """Pods ask for 600 of a GPU. With four every GPU has 400 left; with three one is free."""
    pods = [a_pod(f"p{at}", gpu_fraction="0.6") for at in range(4)]
    assert a_run(*pods).recorder.series[-1]["fragmentation"][MILLI] == 1.0
    assert a_run(*pods[:3]).recorder.series[-1]["fragmentation"][MILLI] == round(800 / 2200, 6)


def test_without_the_plugin_gpus_are_a_resource_like_others() -> None:
    found = figures(a_run(a_pod("a", gpu_fraction="0.3"), a_pod("b", whole="1"), profile=a_profile()))
    assert MILLI not in found["allocation"] and found["allocation"]["nvidia.com/gpu"] == 0.25

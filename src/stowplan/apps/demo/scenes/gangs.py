"""Coscheduling: two jobs, and room for one."""

from __future__ import annotations

from stowplan.apps.demo import pictures
from stowplan.apps.demo.objects import nodes, pod, profiles
from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.stage import NodeStage
from stowplan.objects.pods import Pod

STORY = (
    "Two jobs, north and south, need three nodes each, and their pods arrive in turns. There are four nodes. One by "
    "one, each job gets two and waits for a third: nobody works, and nothing is free. With Coscheduling a job gets all "
    "its nodes or none."
)
POLICY = "Coscheduling"
LABEL = "pod-group.scheduling.kubenexus.io"
MEMBERS = 3
ORDER = {"queueSort": {"enabled": [{"name": POLICY}], "disabled": [{"name": "*"}]}}
CONFIGURATION = profiles(kubenexus_scheduler={"plugins": {**ORDER, "multiPoint": {"enabled": [{"name": POLICY}]}}})


def play(seed: int) -> Scene:
    without, stage = NodeStage(seed), NodeStage(seed, CONFIGURATION)
    for each in (without, stage):
        each.create(*nodes("mpi", "aaaa", cpu="8"))
    without.create(*_pods("default-scheduler", {"north": {}, "south": {}}))
    stage.create(*_pods("kubenexus-scheduler", {name: _labels(name) for name in ("north", "south")}))
    columns = {"one by one": _jobs(without), f"with {POLICY}": _jobs(stage)}
    waiting = next(each for each in stage.pods() if not each.node_name and not _message(each).startswith("pod would"))
    why = [f"{waiting.name} waits: {_message(waiting)}"]
    stage.delete("v1", "Pod", *(f"north-{number}" for number in range(MEMBERS)))
    columns["when north has ended"] = _jobs(stage)
    table = pictures.table("node", *columns)
    for name in (each["metadata"]["name"] for each in stage.documents("nodes")):
        table.add_row(name, *(jobs.get(name, "–") for jobs in columns.values()))
    went_well = [sorted(jobs.values()) for jobs in columns.values()] == [
        ["north", "north", "south", "south"],
        ["north"] * MEMBERS,
        ["south"] * MEMBERS,
    ]
    return Scene(f"{POLICY}: all pods of a job, or none", STORY, [table], why, went_well)


def _pods(scheduler: str, jobs: dict[str, dict[str, str]]) -> list[dict[str, object]]:
    """Return the pods of all jobs, in turns. Each takes a whole node."""
    return [
        pod(f"{name}-{number}", "8", {**labels, "app": name}, schedulerName=scheduler)
        for number in range(MEMBERS)
        for name, labels in jobs.items()
    ]


def _labels(name: str) -> dict[str, str]:
    return {f"{LABEL}/name": name, f"{LABEL}/min-available": str(MEMBERS)}


def _jobs(stage: NodeStage) -> dict[str, str]:
    """Return the job that each node works for."""
    return {each.node_name: each.labels["app"] for each in stage.pods() if each.node_name}


def _message(waiting: Pod) -> str:
    condition = waiting.condition("PodScheduled")
    return "" if condition is None else condition.message

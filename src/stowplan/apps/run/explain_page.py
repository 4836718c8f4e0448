"""The page /debug/explain/NAMESPACE/POD: what `stowplan explain -o json` prints, from the engine's own state.

It runs in the engine's loop, between two steps, because it reads the engine's state. So its search is shorter than that
of the command: its work, counted in decisions about pods, has a bound. For a large group nothing is searched, nor for a
group in a large cluster: what a group could take the place of is all pods there, which takes seconds for 50,000.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from stowplan.apps.explain import answer_json, answers
from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.kubectl_commands import Documents, Owner, PodCount, PodOrigin, RemedyCommands
from stowplan.apps.explain.schedulers import SERVES, Serving
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.diagnosis.any_pod import diagnose_any
from stowplan.diagnosis.causes import cause_groups, pod_causes
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.rejections import rejections
from stowplan.engine.queue.record import QueueStage
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import ReplicaSet

LARGE = "what would help a group of {} pods is not searched for here; stowplan explain does that"
CROWDED = "what would help a group is not searched for here in a cluster of {} pods; stowplan explain does that"
MOST_TRIES = 40  # of changes, while the engine waits
MOST_GROUP_TRIES, MOST_DECISIONS, FEWEST_TRIES = 200, 1_000, 10  # a try of a group decides about all its pods
MOST_PODS = 5_000  # on nodes, among which a group's remedies are searched: some tenths of a second


def explained(engine: Scheduler, pod: Pod, replica_sets: Mapping[str, Any], now: float) -> dict[str, Any] | None:
    """Return the answer about a pod; None if its scheduler is none of ours. `now`: by the engine's clock."""
    profile = engine.profiles.get(pod.scheduler_name)
    if profile is None or pod.uid not in engine.pods:
        return None
    explanation = engine.explain(pod.uid)
    diagnosis = _diagnosis(engine, pod, profile) if explanation.node is None else Diagnosis()
    owners = WorkloadOwners(each for each in replica_sets.values() if isinstance(each, ReplicaSet))
    members, owner = _members(engine, pod), owners.of(pod)
    commands = RemedyCommands(
        _documents(engine, members),
        lambda key: PodOrigin(owners.of(members[key])) if key in members else None,
        pods_of=_counting(engine, owners, pod.namespace),
    )
    commanded = tuple(commands.of(each.changes) for each in diagnosis.remedies)
    diagnosis = replace(diagnosis, remedies=tuple(map(commands.noted, diagnosis.remedies)))
    wait = answers.waiting(pod, answers.document_of(pod), ())
    answer = Answer(
        explanation,
        diagnosis,
        Serving(pod.scheduler_name, SERVES, "Stowplan"),
        answers.Waiting(wait.since, wait.condition, None, queue_of(engine, pod.uid, now)),
        owner,
        commanded,
        bound_to=pod.node_name,
    )
    extenders = answers.not_asked([pod], engine.binding.extenders)
    return answer_json.of(answer) | {"extendersNotAsked": extenders, "unseen": []}


def _diagnosis(engine: Scheduler, pod: Pod, profile: Profile) -> Diagnosis:
    unit = engine.queue.find(pod.uid)
    if unit is None or not unit.group or unit.broken:
        return diagnose_any(engine, pod, profiles=engine.profiles, most_tries=MOST_TRIES)
    tries, placed = min(MOST_DECISIONS // max(len(unit.pods), 1), MOST_GROUP_TRIES), len(engine.state.pods)
    if tries >= FEWEST_TRIES and placed <= MOST_PODS:
        return diagnose_any(engine, pod, most_tries=tries)
    found = rejections(pod, engine.state, profile)
    own = pod_causes(pod, found, engine.state, profile)
    bounded = LARGE.format(len(unit.pods)) if tries < FEWEST_TRIES else CROWDED.format(placed)
    return Diagnosis(own, cause_groups(pod, found, engine.state, profile), bounded=bounded)


def queue_of(engine: Scheduler, uid: str, now: float) -> dict[str, Any] | None:
    """Return where a pod is in the queue; None if it is not there."""
    unit = engine.queue.find(uid)
    if unit is None:
        return None
    left = max(unit.queued.ready_at - now, 0.0) if unit.stage is QueueStage.BACKOFF else 0.0
    return {
        "stage": unit.stage.value,
        "attempts": unit.attempts,
        "waitingSeconds": round(max(now - unit.since, 0.0), 1),
        "backoffSeconds": round(left, 1),
    }


def _members(engine: Scheduler, pod: Pod) -> dict[str, Pod]:
    """Return the pod, and those that wait with it in its group, by key."""
    unit = engine.queue.find(pod.uid)
    return {each.key: each for each in ([] if unit is None else unit.pods.values())} | {pod.key: pod}


def _counting(engine: Scheduler, owners: WorkloadOwners, namespace: str) -> Callable[[Owner], PodCount]:
    @cache
    def counts() -> dict[Owner, PodCount]:
        return owners.counts(each for each in engine.pods.values() if each.namespace == namespace)

    return lambda owner: counts().get(owner, PodCount())


def _documents(engine: Scheduler, pods: Mapping[str, Pod]) -> Documents:
    def document(kind: str, key: str) -> Mapping[str, Any] | None:
        if kind == "Pod" and key in pods:
            return answers.document_of(pods[key])
        row = engine.state.table.row_of.get(key) if kind == "Node" else None
        node = None if row is None else engine.state.table.nodes[row]
        return None if node is None else answers.document_of(node)

    return document

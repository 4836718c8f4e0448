"""The page /debug/explain/NAMESPACE/POD: what `stowplan explain -o json` prints, from the engine's own state.

It runs in the engine's loop, between two steps, so its search is shorter than that of the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stowplan.apps.explain import answer_json, answers
from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.kubectl_commands import Documents, PodOrigin, RemedyCommands
from stowplan.apps.explain.schedulers import SERVES, Serving
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.columns.trial import without_pods
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.search import diagnose
from stowplan.engine.queue.record import QueueStage
from stowplan.engine.scheduler import Scheduler
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import ReplicaSet

ALONE = "what would help the whole group is not searched for here; stowplan explain does that"
MOST_TRIES = 40  # of changes, while the engine waits


def explained(engine: Scheduler, pod: Pod, replica_sets: Mapping[str, Any], now: float) -> dict[str, Any] | None:
    """Return the answer about a pod; None if its scheduler is none of ours. `now`: by the engine's clock."""
    profile = engine.profiles.get(pod.scheduler_name)
    if profile is None or pod.uid not in engine.pods:
        return None
    explanation = engine.explain(pod.uid)
    diagnosis = Diagnosis()
    if explanation.node is None and pod.uid in engine.state.pods:
        with without_pods(engine.state, [pod.uid]):
            diagnosis = diagnose(explanation.decision.pod, engine.state, profile, most_tries=MOST_TRIES)
    elif explanation.node is None:
        diagnosis = diagnose(pod, engine.state, profile, profiles=engine.profiles, most_tries=MOST_TRIES)
        unit = engine.queue.find(pod.uid)
        if unit is not None and unit.group:  # what helps one pod need not help all that must run together
            diagnosis = replace(diagnosis, remedies=(), bounded=ALONE)
    owner = WorkloadOwners(each for each in replica_sets.values() if isinstance(each, ReplicaSet)).of(pod)
    commands = RemedyCommands(_documents(engine, pod), lambda key: PodOrigin(owner) if key == pod.key else None)
    wait = answers.waiting(pod, answers.document_of(pod), ())
    answer = Answer(
        explanation,
        diagnosis,
        Serving(pod.scheduler_name, SERVES, "Stowplan"),
        answers.Waiting(wait.since, wait.condition, None, queue_of(engine, pod.uid, now)),
        owner,
        tuple(commands.of(each.changes) for each in diagnosis.remedies),
        bound_to=pod.node_name,
    )
    return answer_json.of(answer) | {"extendersNotAsked": [], "unseen": []}


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


def _documents(engine: Scheduler, pod: Pod) -> Documents:
    def document(kind: str, key: str) -> Mapping[str, Any] | None:
        if (kind, key) == ("Pod", pod.key):
            return answers.document_of(pod)
        row = engine.state.table.row_of.get(key) if kind == "Node" else None
        node = None if row is None else engine.state.table.nodes[row]
        return None if node is None else answers.document_of(node)

    return document

"""Records of kube-scheduler's decisions about pods: our answer to the same scenario, in the records' own form.

A record is a JSON object with `config`, `cluster`, `pod` and `expect`, as in the golden files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stowplan.apps import profile_loader
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Decision, Verdict
from stowplan.framework.evaluation import Evaluation, schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.errors import StowplanError
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default import candidates
from stowplan.plugins.nodes.default.default_preemption import DefaultPreemption

Answer = dict[str, Any]

# The lists of a recorded cluster in the order of reading, and the kind of each.
LISTS = {
    "namespaces": "Namespace",
    "nodes": "Node",
    "pods": "Pod",
    "services": "Service",
    "replicationControllers": "ReplicationController",
    "replicaSets": "ReplicaSet",
    "statefulSets": "StatefulSet",
    "podDisruptionBudgets": "PodDisruptionBudget",
    "persistentVolumes": "PersistentVolume",
    "persistentVolumeClaims": "PersistentVolumeClaim",
    "storageClasses": "StorageClass",
    "csiNodes": "CSINode",
    "csiDrivers": "CSIDriver",
    "csiStorageCapacities": "CSIStorageCapacity",
    "volumeAttachments": "VolumeAttachment",
    "deviceClasses": "DeviceClass",
    "resourceSlices": "ResourceSlice",
    "resourceClaims": "ResourceClaim",
    "resourceClaimTemplates": "ResourceClaimTemplate",
}


def answer(scenario: Mapping[str, Any]) -> Answer:
    """Return our complete answer, in the form of a record's `expect`."""
    state = cluster(scenario["cluster"])
    pod = kinds.convert(Pod, scenario["pod"])
    profile = profile_of(pod, scenario.get("config"))
    profile.attach(state)
    decision = schedule_one(pod, state, profile)
    if decision.error:
        raise StowplanError(decision.error)
    return judged(decision, state, profile)


def judged(decision: Decision, state: ClusterState, profile: Profile) -> Answer:
    """Return a decision in the form of a record's `expect`."""
    return {**_filtering(decision), **_scoring(decision), **_failing(decision, state, profile)}


def cluster(lists: Mapping[str, Any]) -> ClusterState:
    state = ClusterState()
    fill(state, lists)
    return state


def fill(state: ClusterState, lists: Mapping[str, Any]) -> None:
    """Put the objects of a record's cluster into a state."""
    unknown = lists.keys() - LISTS.keys()
    if unknown:
        raise StowplanError(f"the record's cluster has lists of unknown kinds: {', '.join(sorted(unknown))}")
    for name, kind in LISTS.items():
        for item in lists.get(name) or ():
            state.apply(Put(kinds.convert(kinds.KINDS[kind], item)))


def profile_of(pod: Pod, configuration: Mapping[str, Any] | None) -> Profile:
    _, profiles = profile_loader.defaults() if configuration is None else profile_loader.configured(configuration)
    if pod.scheduler_name not in profiles:
        raise StowplanError(f"no profile is called {pod.scheduler_name!r}; there are {', '.join(profiles)}")
    return profiles[pod.scheduler_name]


def _filtering(decision: Decision) -> Answer:
    answer: Answer = {} if decision.gated is None else {"preEnqueue": verdict_of(decision.gated)}
    no_nodes = not len(decision.trail.names)
    answer["prefilter"] = None if decision.refused is None or no_nodes else verdict_of(decision.refused)
    if decision.limited_to is not None:
        answer["prefilterNodes"] = sorted(decision.limited_to)
    filtered = decision.gated is None and decision.refused is None
    answer["filter"] = {name: verdict_of(each) for name, each in decision.trail.rejections()} if filtered else {}
    return answer


def verdict_of(verdict: Verdict | None) -> Answer | None:
    if verdict is None:
        return None
    return {"plugin": verdict.plugin, "code": verdict.code, "reasons": list(verdict.reasons)}


def _scoring(decision: Decision) -> Answer:
    answer: Answer = {"scores": {name: {**s, "total": total} for name, s, total in decision.trail.scored()}}
    best = sorted(decision.trail.best())
    if best:
        answer["best"] = best
    return answer


def _failing(decision: Decision, state: ClusterState, profile: Profile) -> Answer:
    if decision.node is not None or decision.gated is not None:
        return {}
    answer: Answer = {"message": decision.message}
    for enabled in profile.post_filters:
        if isinstance(enabled.plugin, DefaultPreemption) and len(decision.trail.names):
            answer["preemption"] = _preemption(decision, state, profile, enabled.plugin)
    return answer


def _preemption(decision: Decision, state: ClusterState, profile: Profile, plugin: DefaultPreemption) -> Answer:
    """Return the dry run of preemption on all nodes, as it was recorded."""
    reason = plugin.ineligible(decision.pod, decision, state)
    answer: Answer = {"eligible": not reason}
    if reason:
        answer["reason"] = reason
    found = candidates.Candidates()
    if not reason:
        evaluation = Evaluation(decision.pod, state, profile)
        evaluation.pre_filter()
        found, _ = plugin.dry_run(decision.pod, decision, evaluation)
    answer["candidates"] = {
        each.node: {"victims": [pod.name for pod in each.victims], "pdbViolations": each.violations}
        for each in sorted(found, key=lambda each: each.node)
    }
    answer["picked"] = sorted(found[place].node for place in candidates.best(found).tolist())
    if not found:
        answer["message"] = ", ".join(decision.post_filter.reasons) if decision.post_filter is not None else ""
    return answer


def differences(expected: object, found: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    """Yield all fields in which two answers differ: (path, expected, found)."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in sorted({*expected, *found}):
            if key not in expected or key not in found:
                yield f"{path}.{key}".lstrip("."), expected.get(key, "(absent)"), found.get(key, "(absent)")
            else:
                yield from differences(expected[key], found[key], f"{path}.{key}".lstrip("."))
    elif expected != found:
        yield path, expected, found

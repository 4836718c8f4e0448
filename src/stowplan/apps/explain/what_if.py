"""What would happen with manifests: their objects come in order, and what each pod takes is counted for the next.

Pods that are evicted for one are gone for the next. The pods of a group are asked about together. A pod that finds no
node takes nothing; if the next one is like it, the answer is the same, and it is not asked about again.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from stowplan.apps.explain.admission import WITH_PODS, Admission, Submission
from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.kubectl_commands import Manifest
from stowplan.apps.explain.pod_explainer import PodExplainer
from stowplan.diagnosis.diagnosis import NamedCause
from stowplan.diagnosis.remedy import CreateObject, Operation, PatchObject, Remedy
from stowplan.embedded.manifests import documents, documents_in
from stowplan.framework.causes import Cause
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PriorityClass, ReplicaSet

STDIN = "-"
ASKED = (*WITH_PODS, "PodGroup", "SigsPodGroup", "Placement")


def read(files: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the documents of files, folders and stdin, each with its file. One must be of a kind to explain."""
    found: list[tuple[str, dict[str, Any]]] = []
    for file in files:
        if file != STDIN and not Path(file).exists():
            raise ConfigError("cannot be read: no such file", file=file)
        found += documents_in(sys.stdin.buffer.read(), STDIN) if file == STDIN else documents([file])
    kinds = [str(document.get("kind")) for _, document in found]
    if not any(kind in ASKED for kind in kinds):
        seen = ", ".join(dict.fromkeys(kinds)) or "no document"
        remedy = f"kinds that can be explained: {', '.join(each for each in ASKED if each != 'SigsPodGroup')}"
        raise ConfigError(f"found {seen}", file=", ".join(files), remedy=remedy)
    return found


def submissions(
    found: Iterable[tuple[str, dict[str, Any]]], admission: Admission, namespace: str, replicas: int | None
) -> list[Submission]:
    """Return what the documents would become."""
    made = (admission.submit(document, file, namespace, replicas) for file, document in found)
    return [each for each in made if each is not None]


def explain(explainer: PodExplainer, submitted: Sequence[Submission]) -> list[Answer]:
    """Return the answers about the pods of manifests, in order."""
    files = [each.file for each in submitted]
    for each in submitted:
        alone = files.count(each.file) == 1
        explainer.manifests[each.kind, each.key] = Manifest(each.file, each.kind, each.key, each.document, alone)
        for pod in each.pods if each.kind == "Pod" else ():
            explainer.manifests["Pod", pod.key] = Manifest(each.file, "Pod", pod.key, each.document, alone)
        for found in each.objects:
            if isinstance(found, ReplicaSet):
                explainer.owners.add(found)
            if not isinstance(found, Pod):
                explainer.snapshot.put(found)
    answers: list[Answer] = []
    groups: dict[str, list[Pod]] = {}
    for each in submitted:
        _come(explainer, each, answers, groups)
    if groups:
        _come_together(explainer, groups, answers)
    return answers


def _come(explainer: PodExplainer, submission: Submission, answers: list[Answer], groups: dict[str, list[Pod]]) -> None:
    """The pods of one object, one after the other; members of groups are only taken in."""
    failed: Answer | None = None
    for pod in submission.pods:
        found = explainer.snapshot.put(pod)
        assert isinstance(found, Pod)
        explainer.unborn.add(found.key)
        group = explainer.snapshot.in_group(found)
        if group:
            groups.setdefault(group, []).append(found)
            continue
        if failed is not None and explainer.kind(found) == explainer.kind(failed.pod):
            failed = answers[-1] = replace(failed, alike=(*failed.alike, found))
            continue
        answer = explainer.answer(found)
        if submission.missing_class:
            answer = _without_class(explainer, answer, submission.missing_class)
        answers.append(answer)
        failed = answer if not _takes(explainer, answer) else None


def _takes(explainer: PodExplainer, answer: Answer) -> bool:
    """Count what the pod takes. False if it takes nothing."""
    snapshot, evicted = explainer.snapshot, answer.explanation.evictions
    if answer.node is not None:
        snapshot.place(answer.pod, answer.node)
        return True
    if evicted is None or answer.serving.absent or answer.pod.key not in evicted.nodes:
        return False
    for victim in evicted.victims:
        snapshot.remove(victim)
    snapshot.place(answer.pod, evicted.nodes[answer.pod.key])
    return True


def _come_together(explainer: PodExplainer, groups: dict[str, list[Pod]], answers: list[Answer]) -> None:
    for pods in groups.values():
        found = [explainer.answer(pod) for pod in pods]
        for answer in found:
            _takes(explainer, answer)
        answers += found


def _without_class(explainer: PodExplainer, answer: Answer, name: str) -> Answer:
    """The answer about a pod that the API server refuses, because its PriorityClass does not exist."""
    text = f"there is no PriorityClass {name}: the API server refuses the pod"
    cause = NamedCause("", Cause("priority-class", text, {"name": name}))
    remedies = tuple(_remedies_for_class(explainer, answer, name))
    because = f'pods "{answer.pod.name}" is forbidden: no PriorityClass with name {name} was found'
    diagnosis = replace(answer.diagnosis, pod_causes=(cause, *answer.diagnosis.pod_causes), remedies=remedies)
    explanation = replace(answer.explanation, because=because)
    return explainer.with_commands(replace(answer, explanation=explanation, diagnosis=diagnosis))


def _remedies_for_class(explainer: PodExplainer, answer: Answer, name: str) -> Iterator[Remedy]:
    pod, snapshot = answer.pod, explainer.snapshot
    classes = {each.name: each for each in snapshot.objects.values() if isinstance(each, PriorityClass)}
    for near in difflib.get_close_matches(name, classes, 1):
        spec = msgspec.structs.replace(pod.spec, priority_class_name=near, priority=classes[near].value)
        decision = snapshot.engine.explain_pod(msgspec.structs.replace(pod, spec=spec)).decision
        if decision.node is not None:
            patch = PatchObject("Pod", pod.key, (Operation("add", "/spec/priorityClassName", near),))
            yield Remedy("priority-class", f"use the PriorityClass {near}", (patch,), decision.node)
    if answer.explanation.decision.node is not None:
        document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        text = f"create the PriorityClass {name}, with the value 0"
        created = CreateObject({**document, "value": 0})
        yield Remedy("create-priority-class", text, (created,), answer.explanation.decision.node)

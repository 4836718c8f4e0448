"""What would happen with manifests: their objects come in order, and what each pod takes is counted for the next.

Groups come last, each as a whole. Pods that the API server would refuse take nothing.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from stowplan.apps.explain import quota_remedies
from stowplan.apps.explain.admission import WITH_PODS, Admission, Submission
from stowplan.apps.explain.answers import Answer, FurtherPod
from stowplan.apps.explain.in_order import InOrder
from stowplan.apps.explain.kubectl_commands import Manifest
from stowplan.apps.explain.pod_explainer import PodExplainer
from stowplan.apps.explain.quotas import QuotaRefusal, Quotas
from stowplan.diagnosis import ranking
from stowplan.diagnosis.diagnosis import NamedCause
from stowplan.diagnosis.remedy import CreateObject, Operation, PatchObject, Remedy
from stowplan.diagnosis.search import MOST_CHANGES
from stowplan.embedded.manifests import documents, documents_in
from stowplan.framework.causes import Cause
from stowplan.objects.errors import ConfigError
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.pods import Pod
from stowplan.objects.storage import PersistentVolumeClaim
from stowplan.objects.workloads import PriorityClass, ReplicaSet

STDIN = "-"
CREATE_CLASS = "create-priority-class"
OF_PRIORITY = {"raise-priority", "allow-preemption"}  # nothing can be said of these before the class has its value
ASKED = (*WITH_PODS, "PodGroup", "SigsPodGroup", "Placement")
EXPLAINED = f"kinds that can be explained: {', '.join(each for each in ASKED if each != 'SigsPodGroup')}"


def read(
    files: Sequence[str], asked: Sequence[str] = ASKED, remedy: str = EXPLAINED
) -> list[tuple[str, dict[str, Any]]]:
    """Return the documents of files, folders and stdin, each with its file. One must be of a kind that is `asked`."""
    found: list[tuple[str, dict[str, Any]]] = []
    for file in files:
        if file != STDIN and not Path(file).exists():
            raise ConfigError("cannot be read: no such file", file=file)
        found += documents_in(sys.stdin.buffer.read(), STDIN) if file == STDIN else documents([file])
    for file, document in found:
        if not isinstance(document.get("metadata", {}), dict | None):
            problem = f"found {json.dumps(document['metadata'], default=str)[:60]}"
            raise ConfigError(problem, file=file, path=f"{document['kind']}: metadata", remedy="write a mapping")
    kinds = [str(document.get("kind")) for _, document in found]
    if not any(kind in asked for kind in kinds):
        seen = ", ".join(dict.fromkeys(kinds)) or "no document"
        raise ConfigError(f"found {seen}", file=", ".join(files), remedy=remedy)
    return found


def submissions(
    found: Iterable[tuple[str, dict[str, Any]]], admission: Admission, namespace: str, replicas: int | None
) -> list[Submission]:
    """Return what the documents would become."""
    made = (admission.submit(document, file, namespace, replicas) for file, document in found)
    return [each for each in made if each is not None]


def without_pods(files: Sequence[str], groups: Iterable[Submission]) -> str:
    """Return what is said of manifests that make no pods, where none of their groups has a pending member."""
    told = [
        f"group {found.key}: 0 of {found.minimum} members exist."
        for each in groups
        for found in each.objects
        if isinstance(found, PodGroup | SigsPodGroup)
    ]
    return "\n".join(told) or f"{', '.join(files)} makes no pods."


def explain(explainer: PodExplainer, submitted: Sequence[Submission]) -> list[Answer]:
    """Return the answers about the pods of manifests, in order."""
    files = [each.file for each in submitted]
    for each in submitted:
        alone = files.count(each.file) == 1
        explainer.manifests[each.kind, each.key] = Manifest(
            each.file, each.kind, each.key, each.document, alone, each.replicas
        )
        for pod in each.pods if each.kind == "Pod" else ():
            explainer.manifests["Pod", pod.key] = Manifest(each.file, "Pod", pod.key, each.document, alone)
        for found in each.objects:
            if isinstance(found, ReplicaSet):
                explainer.owners.add(found)
            if isinstance(found, PersistentVolumeClaim):
                explainer.claims_to_come[found.key] = each.file if each.file != STDIN else "the manifest"
            if not isinstance(found, Pod):
                explainer.snapshot.put(found)
    order, groups = InOrder(explainer), dict[str, list[Pod]]()
    for each in submitted:
        _come(explainer, each, order, groups)
    for pods in groups.values():
        order.come_together(pods)
    return order.answers()


def _come(explainer: PodExplainer, submission: Submission, order: InOrder, groups: dict[str, list[Pod]]) -> None:
    """The pods of one object, one after the other; members of groups are only taken in."""
    pods = [explainer.snapshot.put(pod) for pod in submission.pods]
    found = [pod for pod in pods if isinstance(pod, Pod)]
    explainer.rehearsed.update(pod.key for pod in found)
    if submission.missing_class and found:
        answer = _without_class(explainer, explainer.answer(found[0]), submission.missing_class)
        order.add(replace(answer, alike=tuple(FurtherPod(pod) for pod in found[1:])))
        return
    for pod in found:
        if pod.key in submission.refused:
            continue
        group = explainer.snapshot.in_group(pod)
        if group:
            groups.setdefault(group, []).append(pod)
        else:
            order.come(pod)
    refused = [pod for pod in found if pod.key in submission.refused]
    if refused:  # they would come after those that are admitted
        order.add(_over_quota(explainer, refused, submission.refused[refused[0].key], submission.quotas))


def _over_quota(explainer: PodExplainer, pods: Sequence[Pod], refusal: QuotaRefusal, quotas: Quotas) -> Answer:
    """The answer about pods that the API server refuses, because a quota of their namespace has no room for them."""
    answer = replace(explainer.answer(pods[0]), alike=tuple(FurtherPod(pod) for pod in pods[1:]))
    remedies, tried_for = quota_remedies.remedies(explainer, answer, refusal, quotas)
    cause = replace(refusal.cause, text=f"{refusal.cause.text}: the API server refuses the pod")
    own = (NamedCause("", cause), *answer.diagnosis.pod_causes)
    diagnosis = replace(answer.diagnosis, pod_causes=own, remedies=remedies, waits=(), never="")
    because = f'pods "{answer.pod.name}" is forbidden: {refusal.message}'
    decision = replace(answer.explanation.decision, post_filter=None)  # nobody is evicted for a pod that is refused
    explanation = replace(answer.explanation, decision=decision, because=because)
    whole = replace(answer, explanation=explanation, diagnosis=diagnosis, tried_for=tried_for)
    return explainer.with_commands(whole)


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
    document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    text, created = f"create the PriorityClass {name}, with the value 0", CreateObject({**document, "value": 0})
    if answer.explanation.decision.node is not None:
        yield Remedy(CREATE_CLASS, text, (created,), answer.explanation.decision.node)
    else:
        found = (each for each in answer.diagnosis.remedies if not OF_PRIORITY & set(each.code.split("+")))
        beside = (_beside(created, text, each) for each in found if len(each.code.split("+")) < MOST_CHANGES)
        yield from sorted(beside, key=ranking.order)


def _beside(created: CreateObject, text: str, remedy: Remedy) -> Remedy:
    """Return a remedy of the pod that the API server refuses, together with the class without which it does so."""
    return replace(
        remedy,
        code=ranking.of_codes(CREATE_CLASS, remedy.code),
        text=f"{text}; {remedy.text}",
        changes=(created, *remedy.changes),
        ranked_as=ranking.of_codes(CREATE_CLASS, remedy.ranked_as or remedy.code),
    )

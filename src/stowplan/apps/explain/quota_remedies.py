"""What helps pods that a quota refuses: a higher quota, or requests and limits where it wants them specified.

Each is tried for all refused pods, one after the other: a quota that admits them does not make room on nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stowplan.apps.explain import replicas
from stowplan.apps.explain.answers import Answer, document_of
from stowplan.apps.explain.pod_explainer import PodExplainer
from stowplan.apps.explain.quotas import QuotaRefusal, Quotas, plain_name
from stowplan.apps.explain.replicas import MOST_PODS, ReplicaTrying
from stowplan.diagnosis import patches
from stowplan.diagnosis.remedy import ObjectChange, Operation, PatchObject, Remedy
from stowplan.objects import kinds, quantity
from stowplan.objects.pod_parts import Container
from stowplan.objects.pods import Pod

RAISE, SPECIFY = "raise-quota", "specify-resources"
SMALL = {"cpu": "100m", "memory": "128Mi"}  # for a container that says nothing: its owner knows better


def remedies(
    explainer: PodExplainer, answer: Answer, refusal: QuotaRefusal, quotas: Quotas
) -> tuple[tuple[Remedy, ...], int]:
    """Return what helps the pods of an answer, and how many of them it was tried for."""
    pods = list(answer.pods)[:MOST_PODS]
    if refusal.unspecified:
        return _specified(explainer, pods, refusal, quotas), len(pods)
    raised = quotas.raised(answer.pods)
    text = "; ".join(map(_text, raised))
    found = _tried(explainer, pods, Remedy(RAISE, text, raised, None), ())
    if found is not None:
        return (found,), len(pods)
    lacking = replicas.tried(explainer, answer, pods, ()) if len(pods) > 1 and answer.diagnosis.remedies else answer
    both = (
        replace(each, code=f"{RAISE}+{each.code}", text=f"{text}; {each.text}", changes=(*raised, *each.changes))
        for each in lacking.diagnosis.remedies
    )
    return tuple(both), lacking.tried_for


def _text(raised: PatchObject) -> str:
    told = ", ".join(f"{patches.segments(each.path)[-1]} to {each.value}" for each in raised.operations)
    return f"raise quota {raised.key.rpartition('/')[2]}: {told}"


def _tried(
    explainer: PodExplainer, pods: Sequence[Pod], remedy: Remedy, changes: Sequence[ObjectChange]
) -> Remedy | None:
    """Return the remedy with the nodes of the pods; None if none of them has one. `changes`: of the pods."""
    trying = ReplicaTrying(explainer.snapshot.state, explainer.profiles_for(pods), pods)
    trying.order.keep_all()
    try:
        found = trying.try_changes(changes)
    finally:
        trying.order.restore()
    if found is None or not found.nodes:
        return None
    lack = f"the nodes have room for {len(found.nodes)} of these {len(pods)} pods"
    also = (lack,) if len(found.nodes) < len(pods) else ()
    node = next(iter(found.nodes.values()))
    return replace(remedy, node=node, nodes=found.nodes, evicted=found.evicted, also=also)


def _specified(
    explainer: PodExplainer, pods: Sequence[Pod], refusal: QuotaRefusal, quotas: Quotas
) -> tuple[Remedy, ...]:
    """Give each container a small amount of what the quota wants specified, as a beginning."""
    operations = tuple(_amounts(pods[0], refusal.unspecified))
    document = document_of(pods[0])
    whole = patches.completed(operations, document)
    changed = [kinds.convert(Pod, patches.patched(document_of(pod), whole)) for pod in pods]
    if not quotas.would_admit(changed):
        return ()
    changes = tuple(PatchObject("Pod", pod.key, whole) for pod in pods)
    told = ", ".join(f"{name} ({SMALL[plain_name(name)]}, say)" for name in refusal.unspecified)
    found = _tried(explainer, pods, Remedy(SPECIFY, f"specify {told} in every container", changes, None), changes)
    return () if found is None else (found,)


def _amounts(pod: Pod, resources: Sequence[str]) -> Iterator[Operation]:
    places = (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers))
    for field, containers in places:
        for at, container in enumerate(containers):
            for resource in resources:
                name, kind = plain_name(resource), "limits" if resource.startswith("limits.") else "requests"
                if name not in getattr(container.resources, kind):
                    path = patches.pointer("spec", field, at, "resources", kind, name)
                    yield Operation("add", path, _amount(container, kind, name))


def _amount(container: Container, kind: str, name: str) -> str:
    """Return a small amount; at least what is requested for a limit, at most the limit for a request."""
    other = container.resources.requests if kind == "limits" else container.resources.limits
    chosen = max if kind == "limits" else min
    amounts = [SMALL[name], *([str(other[name])] if name in other else [])]
    return chosen(amounts, key=quantity.nanos)

"""What is on its way: pods that are leaving, room set aside for others, claims to be bound, nodes to be well again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.diagnosis import Wait
from stowplan.diagnosis.rejections import rejections
from stowplan.diagnosis.remedies.toleration import NOT_READY, PRESSURES, says_how_a_node_is
from stowplan.diagnosis.trying import Trying, fits_somewhere
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.pods import Pod
from stowplan.objects.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, StorageClass
from stowplan.objects.taints import HARD_EFFECTS, Taint, tolerated

MOST_NAMES = 5
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def for_scheduler(pod: Pod) -> Wait:
    return Wait("no-scheduler", f"nobody serves the scheduler name {pod.scheduler_name}: start that scheduler")


def waits(trying: Trying, profile: Profile, terminating: Sequence[Pod]) -> Iterator[Wait]:
    """Yield what may help without a change. `terminating`: pods on the nodes that lack the least."""
    pod, state = trying.pod, trying.state
    if not state.table.live_count:
        yield Wait("no-nodes", "the cluster has no nodes yet")
        return
    leaving = [other for other in terminating if other.uid in state.pods]
    if leaving:
        with state.trial() as trial:
            for other in leaving:
                trying.order.keep(state.pods[other.uid].row)
                trial.remove_pod(other.uid)
            helps = fits_somewhere(pod, state, profile)
        if helps:
            have = "has" if len(leaving) == 1 else "have"
            yield Wait("terminating-pods", f"wait until {_names(leaving)} {have} ended (terminating now)")
    rivals = [
        other
        for others in state.nominated_pods.by_node.values()
        for other in others.values()
        if other.uid != pod.uid and other.priority >= pod.priority
    ]
    if rivals:
        with state.trial() as trial:
            for other in rivals:
                trial.drop_nomination(other.uid)
            helps = fits_somewhere(pod, state, profile)
        if helps:
            yield Wait("nomination", f"room is set aside for {_names(rivals)}; it is free if these go elsewhere")
    yield from nodes_to_mend(pod, state, profile)
    yield from claims_to_come(pod, state)
    nominated = pod.nominated_node or state.nominated_pods.node_of(pod.uid)
    if nominated:
        yield Wait("nominated", f"the pod is nominated to node {nominated}: room is being made for it there")


def claims_to_come(pod: Pod, state: ClusterState) -> Iterator[Wait]:
    """Yield the pod's claims that somebody else is to bind or to delete: the controller of claims, or a provisioner."""
    known = state.store.every(PersistentVolumeClaim)
    for claim in filter(None, map(known.get, pod.shape.claims)):
        storage_class = state.store.get(StorageClass, claim.storage_class) if claim.storage_class else None
        if claim.terminating:
            yield Wait("claim-to-go", f"wait until claim {claim.key} is deleted, then create it anew")
            continue
        if claim.bound:
            continue
        if claim.spec.volume_name:
            if state.store.get(PersistentVolume, claim.spec.volume_name) is None:
                continue
            why = f"its binding to volume {claim.spec.volume_name} is under way"
        elif claim.annotations.get(SELECTED_NODE):
            why = f"its volume is being provisioned for node {claim.annotations[SELECTED_NODE]}"
        elif storage_class is not None and storage_class.volume_binding_mode and not storage_class.waits:
            maker = storage_class.provisioner
            why = f"{maker} makes its volume, before pods that use it are scheduled"
            if maker == NO_PROVISIONER:
                why = f"somebody has to create a volume of class {storage_class.name}, for nothing provisions one"
        else:
            continue
        yield Wait("claim-to-bind", f"wait until claim {claim.key} is bound: {why}")


def nodes_to_mend(pod: Pod, state: ClusterState, profile: Profile) -> Iterator[Wait]:
    """Yield what has to change on nodes that would have room for the pod if they were well."""
    nodes = Cluster(state).nodes
    rows = nodes.rows[nodes.taints.where(lambda taints: any(_ills(taints, pod)))]
    ill = {node.name: node for row in rows.tolist() if (node := state.table.nodes[row]) is not None}
    if not ill:
        return
    with state.trial():
        for node in ill.values():
            kept = tuple(taint for taint in node.spec.taints if not says_how_a_node_is(taint))
            spec = msgspec.structs.replace(node.spec, taints=kept)
            state.apply(Put(msgspec.structs.replace(node, spec=spec)))
        found = rejections(pod, state, profile)
        helped = [name for name in found.nodes.where(found.feasible()).names if name in ill]
    alike: dict[str, list[str]] = {}
    for name in helped:
        ills = " and ".join(dict.fromkeys(_ills(ill[name].spec.taints, pod)))
        alike.setdefault(ills, []).append(name)
    for ills, names in alike.items():
        shown = f"node {names[0]} is" if len(names) == 1 else f"one of the nodes {_few(names)} is"
        yield Wait("node-not-well", f"wait until {shown} {ills}, or repair it")


def _ills(taints: Iterable[Taint], pod: Pod) -> Iterator[str]:
    """Yield what a node must be again, for each taint that says how it is and keeps the pod away."""
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not tolerated(taint, pod.tolerations):
            if taint.key in NOT_READY:
                yield "ready again"
            elif taint.key in PRESSURES:
                yield f"no longer under {PRESSURES[taint.key]} pressure"


def _names(pods: Sequence[Pod]) -> str:
    return _few([pod.key for pod in pods])


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more

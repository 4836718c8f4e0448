"""What is on its way: pods that are leaving, room set aside for others, a scheduler that must run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stowplan.diagnosis.diagnosis import Wait
from stowplan.diagnosis.trying import Trying, fits_somewhere
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod

MOST_NAMES = 5


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
    nominated = pod.nominated_node or state.nominated_pods.node_of(pod.uid)
    if nominated:
        yield Wait("nominated", f"the pod is nominated to node {nominated}: room is being made for it there")


def _names(pods: Sequence[Pod]) -> str:
    names = [pod.key for pod in pods]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more

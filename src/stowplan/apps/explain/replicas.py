"""Remedies of one pod, tried for all pods that are like it: how many of them would have a node then.

The pods come one after the other in a trial, without those that took their room before them or came after them. More
nodes are added, and requests lowered, until all pods have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.pod_explainer import PodExplainer
from stowplan.columns.trial import Trial, without_pods
from stowplan.diagnosis import failing_plugins, patches, ranking
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.rehearsing import Rehearsing
from stowplan.diagnosis.remedies import lower_request
from stowplan.diagnosis.remedies.scale_down import NUMBER_OF
from stowplan.diagnosis.remedy import AddNodes, DeleteObject, ObjectChange, PatchObject, Remedy
from stowplan.framework.evaluation import schedule_one
from stowplan.objects.errors import ConfigError, PluginError
from stowplan.objects.pods import Pod

MOST_PODS = 200  # that remedies are tried for
MOST_NODES = 1000  # that are added


@dataclass(frozen=True)
class TriedReplicas:
    """`nodes`: of the pods that would have one, by key. `evicted`: the keys of pods that would be evicted."""

    nodes: dict[str, str]
    evicted: tuple[str, ...] = ()


class ReplicaTrying(Rehearsing):
    """Tries changes for pods that are alike. What changes the first one changes all of them."""

    def try_changes(self, changes: Iterable[ObjectChange], gone: Iterable[str] = ()) -> TriedReplicas | None:
        """Return which pods would have a node; None if this cannot be tried. `gone`: keys of pods that go with it."""
        try:
            with self.state.trial() as trial:
                pods = self._make(each for each in self.for_all(changes) if not _is_scaled(each))
                for key in gone:
                    self._delete_pod(key)
                return self._come(map(self.classed, pods.values()), trial)
        except (ConfigError, LookupError, ValueError, PluginError):
            return None

    def for_all(self, changes: Iterable[ObjectChange]) -> tuple[ObjectChange, ...]:
        """Return the changes with a patch of one of the pods as patches of all of them."""
        found: list[ObjectChange] = []
        for each in changes:
            if isinstance(each, PatchObject) and each.kind == "Pod" and each.key in self.members:
                found += [replace(each, key=key) for key in self.members]
            else:
                found.append(each)
        return tuple(found)

    def _come(self, pods: Iterable[Pod], trial: Trial) -> TriedReplicas:
        nodes, evicted = dict[str, str](), list[str]()
        for pod in pods:
            profile = self.profiles.get(pod.scheduler_name)
            decision = None if profile is None else schedule_one(pod, self.state, profile)
            if decision is None or decision.error:
                break
            node = decision.node
            candidate = None if decision.post_filter is None else decision.post_filter.candidate
            if node is None and candidate is not None:
                node = candidate.node
                evicted += [victim.key for victim in candidate.victims]
                for victim in candidate.victims:
                    trial.remove_pod(victim.uid)
            if node is None:
                break  # the others are like this one
            trial.add_pod(pod, node)
            nodes[pod.key] = node
        return TriedReplicas(nodes, tuple(evicted))


def tried(explainer: PodExplainer, answer: Answer, pods: Sequence[Pod], behind: Sequence[Pod]) -> Answer:
    """Return the answer with its remedies tried for all pods that are alike; those that help most come first.

    behind   pods that came later, and took room: these pods come before them
    """
    state, chosen = explainer.snapshot.state, list(pods)[:MOST_PODS]
    gone = dict.fromkeys(each.uid for each in (*pods, *behind) if each.uid in state.pods)
    failing = failing_plugins.names_in(answer.diagnosis)
    profiles = failing_plugins.working(explainer.profiles_for(chosen), answer.pod.scheduler_name, failing)
    trying = ReplicaTrying(state, profiles, chosen)
    trying.order.keep_all()
    try:
        with without_pods(state, list(gone)):
            found = [_tried(trying, each) for each in answer.diagnosis.remedies]
    finally:
        trying.order.restore()
    helpful = [each for each in found if explainer.is_possible(each)]
    ranked = sorted(helpful, key=lambda each: (-len(each.nodes), ranking.order(each)[:3]))
    diagnosis: Diagnosis = replace(answer.diagnosis, remedies=tuple(ranked))
    return explainer.with_commands(replace(answer, diagnosis=diagnosis, tried_for=len(chosen)))


def _tried(trying: ReplicaTrying, remedy: Remedy) -> Remedy:
    scaled = remedy.evicted if any(map(_is_scaled, remedy.changes)) else ()
    found = trying.try_changes(remedy.changes, scaled)
    if found is None:
        return replace(remedy, nodes={})
    added = next((each for each in remedy.changes if isinstance(each, AddNodes)), None)
    if added is not None and len(found.nodes) < len(trying.members):
        remedy, found = _with_more_nodes(trying, remedy, added, found)
    elif remedy.code == lower_request.CODE:
        remedy, found = _with_lower_request(trying, remedy, found)
    deleted = [each.key for each in remedy.changes if isinstance(each, DeleteObject) and each.kind == "Pod"]
    evicted = tuple(dict.fromkeys((*deleted, *scaled, *found.evicted)))
    node = next(iter(found.nodes.values()), remedy.node)
    changes = trying.for_all(remedy.changes)
    return replace(remedy, changes=changes, node=node, nodes=found.nodes, evicted=evicted)


def _is_scaled(change: ObjectChange) -> bool:
    """True for a workload's number of replicas: its controller deletes pods then."""
    return isinstance(change, PatchObject) and change.kind in NUMBER_OF


def _with_more_nodes(
    trying: ReplicaTrying, remedy: Remedy, added: AddNodes, found: TriedReplicas
) -> tuple[Remedy, TriedReplicas]:
    """The fewest nodes with which all pods have one; as before if more nodes do not help more pods."""
    wanted = len(trying.members)
    enough, known = added.number, {added.number: found}
    while len(known[enough].nodes) < wanted:
        more = min(2 * enough, MOST_NODES)
        better = trying.try_changes(_adding(remedy, added, more))
        if more == enough or better is None or len(better.nodes) <= len(known[enough].nodes):
            break
        enough, known[more] = more, better
    few = max((each for each in known if each < enough), default=enough)
    while enough - few > 1:
        middle = (few + enough) // 2
        between = trying.try_changes(_adding(remedy, added, middle))
        if between is not None and len(between.nodes) >= len(known[enough].nodes):
            enough, known[middle] = middle, between
        else:
            few = middle
    text = remedy.text.replace(added.text, replace(added, number=enough).text)
    return replace(remedy, text=text, changes=_adding(remedy, added, enough)), known[enough]


def _with_lower_request(trying: ReplicaTrying, remedy: Remedy, found: TriedReplicas) -> tuple[Remedy, TriedReplicas]:
    """The largest request with which all pods have a node; if there is none, with which as many have one as before.

    As it was if there is none above 0, or two resources are lowered.
    """
    operations = [each for patch in remedy.changes if isinstance(patch, PatchObject) for each in patch.operations]
    names = {patches.segments(each.path)[-1] for each in operations}
    if len(names) != 1 or not found.nodes:
        return remedy, found
    (resource,) = names
    for wanted in dict.fromkeys((len(trying.members), len(found.nodes))):
        better = _largest_request(trying, remedy, resource, wanted)
        if better is not None:
            return better
    return remedy, found


def _largest_request(
    trying: ReplicaTrying, remedy: Remedy, resource: str, wanted: int
) -> tuple[Remedy, TriedReplicas] | None:
    """The largest request above 0 with which so many pods have a node; None if there is none."""
    pod, step, best = trying.waiting[0], lower_request.step_of(resource), None
    low, high = 0, pod.request.get(resource, 0) // step
    while high - low > 1:
        middle = (low + high) // 2
        edit = lower_request.lowered(pod, resource, middle * step)
        tried_now = trying.try_changes(edit.changes)
        if tried_now is not None and len(tried_now.nodes) >= wanted:
            low, best = middle, (_as_edited(remedy, edit), tried_now)
        else:
            high = middle
    return best


def _as_edited(remedy: Remedy, edit: Edit) -> Remedy:
    also, ranked_as = (edit.also,) if edit.also else (), edit.ranked_as or edit.code
    return replace(remedy, text=edit.text, changes=edit.changes, also=also, ranked_as=ranked_as)


def _adding(remedy: Remedy, added: AddNodes, number: int) -> tuple[ObjectChange, ...]:
    return tuple(replace(each, number=number) if each == added else each for each in remedy.changes)

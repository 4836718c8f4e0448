"""Pods one after the other: what each takes is counted for the next, and who is evicted for one is gone for the next.

The pods of a group are asked about together. Pods that are alike cost one diagnosis: if one of them finds no node and
nothing is taken since then, the next one is not even asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import replace

from stowplan.apps.explain import replicas, targets
from stowplan.apps.explain.answers import Answer, FurtherPod
from stowplan.apps.explain.pod_explainer import PodExplainer
from stowplan.engine.explain import Explanation
from stowplan.objects.pods import Pod

GETS_NODE, EVICTS, LOST = "gets a node", "evicts", "lost"
MOST_KEPT = 100  # explanations of further pods that are alike: each has the scores of all nodes


def in_queue_order(explainer: PodExplainer, pods: Iterable[Pod]) -> list[Pod]:
    """Return pending pods as the scheduler would pop them: by its queueSort plugin, then by age."""
    queue = explainer.snapshot.engine.queue

    def place(pod: Pod) -> tuple[object, ...]:
        unit, created = queue.find(pod.uid), pod.metadata.creation_timestamp
        key = queue.place_of(unit) if unit is not None else (LAST, 0.0)
        return key, 0.0 if created is None else created.timestamp()

    return sorted(pods, key=place)


LAST = 99  # pods that are in no queue: nobody here serves them


class InOrder:
    """`placed`: the pods that got a node, as they were before."""

    def __init__(self, explainer: PodExplainer) -> None:
        self._explainer, self._snapshot = explainer, explainer.snapshot
        self.placed: list[Pod] = []
        self._answers: list[Answer] = []
        self._further: list[list[FurtherPod]] = []
        self._since: list[int] = []  # how many were placed when an answer was found
        self._of_kind: dict[tuple[Hashable, str], int] = {}
        self._lost: dict[Hashable, int] = {}  # how many were placed when a pod of this kind last found no node
        self._kept = 0

    def all(self, pods: Iterable[Pod], asked: Collection[str] | None = None) -> None:
        """Let pods come, in this order. `asked`: the keys of those that need an answer; the others only take room."""
        pods, seen = list(pods), set[str]()
        if asked is not None:
            last = max((at for at, pod in enumerate(pods) if pod.key in asked), default=-1)
            pods = pods[: last + 1]
        members: dict[str, list[Pod]] = {}
        for pod in pods:
            if group := self._snapshot.in_group(pod):
                members.setdefault(group, []).append(pod)
        for pod in pods:
            group = self._snapshot.in_group(pod)
            if not group and pod.key not in seen:
                self.come(pod, asked=asked is None or pod.key in asked)
            elif group and group not in seen:
                seen.update((group, *(each.key for each in members[group])))
                self.come_together(members[group], asked)

    def come(self, pod: Pod, *, asked: bool = True) -> None:
        kind = self._explainer.kind(pod)
        if self._lost.get(kind) == len(self.placed) and (not asked or (kind, LOST) in self._of_kind):
            if asked:
                self._note(kind, LOST, FurtherPod(pod))
            return
        found = _outcome(pod, self._explainer.explanation(pod))
        how = GETS_NODE if found.node is not None else LOST if found.evictions is None else EVICTS
        if asked:
            self._note(kind, how, found)
        if how == LOST:
            self._lost[kind] = len(self.placed)
        elif pod.pending:
            self._take(found)

    def come_together(self, pods: Sequence[Pod], asked: Collection[str] | None = None) -> None:
        """The members of one group."""
        found = [_outcome(pod, self._explainer.explanation(pod)) for pod in pods]
        for pod in pods:
            if asked is None or pod.key in asked:
                self.add(self._explainer.answer(pod))
        for each in found:
            if each.node is not None or each.evictions is not None:
                self._take(each)

    def add(self, answer: Answer) -> None:
        """Note an answer that was found otherwise."""
        self._answers.append(answer)
        self._further.append([])
        self._since.append(len(self.placed))

    def _note(self, kind: Hashable, how: str, found: FurtherPod) -> None:
        at = self._of_kind.get((kind, how))
        if at is None:
            self._of_kind[kind, how] = len(self._answers)
            self.add(self._explainer.answer(found.pod))
            return
        self._kept += 1
        kept = found if self._kept <= MOST_KEPT and how != LOST else replace(found, explanation=None)
        self._further[at].append(kept)

    def _take(self, found: FurtherPod) -> None:
        pod, node = found.pod, found.node
        if node is None and found.evictions is not None:
            node = found.evictions.nodes.get(pod.key)
            for victim in found.evictions.victims if node is not None else ():
                if victim.key in self._snapshot.pods:
                    self._snapshot.remove(victim)
        if node is None:
            return
        self.placed.append(pod)
        self._explainer.rehearsed.add(pod.key)
        self._snapshot.place(pod, node)

    def answers(self) -> list[Answer]:
        """Return the answers, in the order of the first pod of each. Remedies are tried for all pods that are alike."""
        found = [
            replace(each, alike=(*each.alike, *more)) for each, more in zip(self._answers, self._further, strict=True)
        ]
        for (kind, how), at in self._of_kind.items():
            alike = [self._of_kind.get((kind, other)) for other in (GETS_NODE, EVICTS, LOST)]
            pods = [pod for place in alike if place is not None for pod in found[place].pods]
            if how != GETS_NODE and len(pods) > 1 and found[at].diagnosis.remedies:
                behind = self.placed[self._since[at] :]
                found[at] = replicas.tried(self._explainer, found[at], pods, behind)
        return found


def judged(explainer: PodExplainer, asked: Collection[str]) -> InOrder:
    """Let all pending pods come, in queue order; `asked` are the keys of those that need an answer.

    A pod of another scheduler that is at work takes no room from others: nobody here knows what that one will do.
    """
    pending = targets.selected(explainer.snapshot.pods, None, "", everywhere=True)
    order = InOrder(explainer)
    chosen = [pod for pod in pending if pod.key in asked or not explainer.is_foreign(pod)]
    order.all(in_queue_order(explainer, chosen), asked)
    return order


def _outcome(pod: Pod, explanation: Explanation | None) -> FurtherPod:
    if explanation is None:  # nobody serves it
        return FurtherPod(pod)
    evicted = explanation.evictions if explanation.node is None else None
    here = evicted if evicted is not None and pod.key in evicted.nodes else None
    return FurtherPod(pod, explanation.node, here, explanation)

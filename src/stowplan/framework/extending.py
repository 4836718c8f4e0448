"""HTTP extenders in a decision: what they were asked, what they said, what they still have to be asked.

A decision waits for nobody. It takes the answers that are there; where one is missing it notes the question (`open`),
goes on as if the extender had no objection, and is made again once the answer has come. Nodes that came to the cluster
after the question count as refused this time, so that a busy cluster cannot keep a decision asking for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.framework.settings import Extender
from stowplan.framework.verdict import UNRESOLVABLE, UNSCHEDULABLE, Candidate, Verdict
from stowplan.objects.actions import Ask, PodRef, Victims
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

EXTENDER = "Extender"  # who rejected a pod that an extender rejected, as kube-scheduler calls it
SCALE = 10  # extenders score 0..10, plugins 0..100
TOO_NEW = Verdict(EXTENDER, UNSCHEDULABLE, ("node(s) came after the extender was asked",))
NOT_KEPT = Verdict(EXTENDER, UNRESOLVABLE, ())  # left out of the answer without a word


class Consultation:
    """One pod's questions to the extenders that care about it, over all decisions of one attempt."""

    def __init__(self, extenders: Sequence[Extender], pod: Pod) -> None:
        self._pod = PodRef(pod.namespace, pod.name, pod.uid)
        self._extenders = [(place, each) for place, each in in_order(extenders) if cares(each, pod)]
        self._answers: dict[tuple[int, str], tuple[Ask, Result]] = {}
        self.open: list[Ask] = []

    def __bool__(self) -> bool:
        return bool(self._extenders)

    def answer(self, question: Ask, result: Result) -> None:
        self._answers[question.extender, question.verb] = (question, result)

    def refused(self, names: Sequence[str]) -> dict[str, Verdict]:
        """Those of the feasible nodes that extenders refuse. One is asked after the other, about what is left."""
        refused: dict[str, Verdict] = {}
        for place, extender in self._with("filter_verb"):
            left = [name for name in names if name not in refused]
            if not left:
                break
            answer = self._known(Ask(extender=place, verb="filter", pod=self._pod, nodes=tuple(left)), left)
            if answer is None:
                break
            try:
                refused |= _filtered(extender, *answer, left)
            except PluginError:
                if not extender.ignorable:
                    raise
        return refused

    def scores(self, names: Sequence[str]) -> Iterator[tuple[str, int, Ints]]:
        """Each extender's address, weight and scores of these nodes; one that fails has no say."""
        for place, extender in self._with("prioritize_verb"):
            answer = self._known(Ask(extender=place, verb="prioritize", pod=self._pod, nodes=tuple(names)), names)
            if answer is None:
                continue
            try:
                scores = _scores(extender, answer[1])
            except PluginError:
                continue
            yield extender.url_prefix, extender.weight * SCALE, np.array([scores.get(n, 0) for n in names], np.int64)

    def candidates(self, found: Sequence[Candidate]) -> list[Candidate]:
        """What extenders leave of the nodes where evictions would make room, and of the victims there."""
        left = list(found)
        for place, extender in self._with("preempt_verb"):
            if not left:
                break
            victims = {each.node: Victims(tuple(_refs(each.victims)), each.violations) for each in left}
            question = Ask(extender=place, verb="preempt", pod=self._pod, victims=victims)
            answer = self._known(question, [each.node for each in left])
            if answer is None:
                break
            try:
                left = _trimmed(extender, answer[1], left)
            except PluginError:
                if not extender.ignorable:
                    raise
        return left

    def binder(self) -> Iterator[tuple[Extender, Ask]]:
        """The extender that binds this pod, if there is one; the node is still to be filled in."""
        for place, extender in self._with("bind_verb"):
            yield extender, Ask(extender=place, verb="bind", pod=self._pod)

    def _with(self, verb: str) -> Iterator[tuple[int, Extender]]:
        return ((place, each) for place, each in self._extenders if getattr(each, verb))

    def _known(self, question: Ask, names: Iterable[str]) -> tuple[Ask, Result] | None:
        """The answer to such a question if it says anything about these nodes; else the question is noted."""
        known = self._answers.get((question.extender, question.verb))
        asked = () if known is None else known[0].nodes or known[0].victims
        if known is None or not set(asked) & set(names):
            self.open.append(question)
            return None
        return known


def in_order(extenders: Sequence[Extender]) -> list[tuple[int, Extender]]:
    """With their place in the configuration; those that may fail unnoticed come last."""
    return sorted(enumerate(extenders), key=lambda entry: entry[1].ignorable)


def cares(extender: Extender, pod: Pod) -> bool:
    """Does the pod use a resource that this extender looks after? One that lists none looks after every pod."""
    managed = {resource.name for resource in extender.managed_resources}
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    used = ({*each.resources.requests, *each.resources.limits} for each in containers)
    return not managed or any(managed & names for names in used)


def field(body: Any, name: str) -> Any:
    """A field by name, in any letter case: extenders written in Go answer in either."""
    if not isinstance(body, Mapping):
        return None
    found = (value for key, value in body.items() if isinstance(key, str) and key.lower() == name.lower())
    return next(found, None)


def problem(extender: Extender, verb: str, result: Result) -> str:
    """What went wrong with an answer, or nothing."""
    if result.status == 200:
        return str(field(result.body, "Error") or "")
    url = f"{extender.url_prefix.rstrip('/')}/{verb}"
    return f"failed {verb} with extender at URL {url}, code {result.status}" if result.status else result.message


def _checked(extender: Extender, verb: str, result: Result) -> Any:
    wrong = problem(extender, verb, result)
    if wrong:
        raise PluginError(EXTENDER, verb, wrong)
    return result.body


def _filtered(extender: Extender, question: Ask, result: Result, names: Sequence[str]) -> dict[str, Verdict]:
    body = _checked(extender, extender.filter_verb, result)
    kept = _kept(extender, body)
    strange = next((name for name in kept if name not in question.nodes), None)
    if strange is not None:
        claim = f'extender "{extender.url_prefix}" claims a filtered node "{strange}" which is not found in the input'
        raise PluginError(EXTENDER, extender.filter_verb, f"{claim} node list")
    reasons = {name: Verdict(EXTENDER, UNSCHEDULABLE, (why,)) for name, why in _texts(body, "FailedNodes")}
    reasons |= {
        name: Verdict(EXTENDER, UNRESOLVABLE, (why,)) for name, why in _texts(body, "FailedAndUnresolvableNodes")
    }
    asked = set(question.nodes)
    return {
        name: reasons.get(name, NOT_KEPT) if name in asked else TOO_NEW
        for name in names
        if name not in kept
    }  # fmt: skip


def _kept(extender: Extender, body: Any) -> set[str]:
    names = field(body, "NodeNames")
    if extender.node_cache_capable and isinstance(names, list):
        return {str(name) for name in names}
    items = field(field(body, "Nodes"), "items")
    return {str(field(field(each, "metadata"), "name")) for each in items} if isinstance(items, list) else set()


def _texts(body: Any, name: str) -> Iterator[tuple[str, str]]:
    found = field(body, name)
    return ((str(key), str(value)) for key, value in found.items()) if isinstance(found, Mapping) else iter(())


def _scores(extender: Extender, result: Result) -> dict[str, int]:
    body = _checked(extender, extender.prioritize_verb, result)
    entries = body if isinstance(body, list) else []
    scores = ((field(each, "Host"), field(each, "Score")) for each in entries)
    return {host: score for host, score in scores if isinstance(host, str) and isinstance(score, int)}


def _trimmed(extender: Extender, result: Result, found: Sequence[Candidate]) -> list[Candidate]:
    body = _checked(extender, extender.preempt_verb, result)
    answered = field(body, "NodeNameToMetaVictims")
    left = []
    for candidate in found:
        said = answered.get(candidate.node) if isinstance(answered, Mapping) else None
        if said is None:
            continue
        uids = {field(pod, "UID") for pod in field(said, "Pods") or ()}
        victims = tuple(pod for pod in candidate.victims if pod.uid in uids)
        if victims:
            left.append(Candidate(candidate.node, victims, int(field(said, "NumPDBViolations") or 0)))
        elif not extender.ignorable:
            message = f'expected at least one victim pod on node "{candidate.node}"'
            raise PluginError(EXTENDER, extender.preempt_verb, message)
    return left


def _refs(pods: Iterable[Pod]) -> Iterator[PodRef]:
    return (PodRef(pod.namespace, pod.name, pod.uid) for pod in pods)

"""HTTP extenders in a decision: what they were asked, what they said, what they still have to be asked.

A decision waits for nobody. It takes the answers that are there; where one is missing it notes the question (`open`),
goes on as if the extender had no objection, and is made again once the answer has come. Nodes that became feasible
after the question are left out if others are left, else asked about: no node is asked about twice in an attempt, so a
busy cluster cannot keep a decision asking for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.views import Cluster
from stowplan.framework.config.settings import Extender
from stowplan.framework.plugin_calls import call_optional
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import UNRESOLVABLE, UNSCHEDULABLE, Candidate, Verdict
from stowplan.objects.actions import Ask, PodRef, Victims
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

EXTENDER = "Extender"  # who rejected a pod that an extender rejected, as kube-scheduler calls it
LARGEST_SCORE = 2**31
SCALE = 10  # extenders score 0..10, plugins 0..100
NOT_ASKED = Verdict(EXTENDER, UNSCHEDULABLE, ("node(s) became feasible after the extender was asked",))
NOT_KEPT = Verdict(EXTENDER, UNRESOLVABLE, ())  # left out of the answer without a word
Labels: TypeAlias = Callable[[Pod], dict[str, str]]


class ExtenderReply:
    """What an extender answered to one verb in this attempt: something per node, or what went wrong."""

    def __init__(self) -> None:
        self.of: dict[str, Any] = {}
        self.wrong = ""


class Consultation:
    """One pod's questions to the extenders that care about it, over all decisions of one attempt."""

    def __init__(self, extenders: Sequence[Extender], pod: Pod, labels: Labels = lambda _: {}) -> None:
        """`labels`: what extenders are to see on a pod besides its own."""
        self._whole, self._labels = pod, labels
        self._pod = PodRef(pod.namespace, pod.name, pod.uid)
        self._extenders = [(place, each) for place, each in in_order(extenders) if cares(each, pod)]
        self._answers: dict[tuple[int, str], ExtenderReply] = {}
        self.open: list[Ask] = []

    def __bool__(self) -> bool:
        return bool(self._extenders)

    def answer(self, question: Ask, result: Result) -> None:
        """Take in an answer: read once, whatever it is, and kept per node."""
        extender = next(each for place, each in self._extenders if place == question.extender)
        said = self._answers.setdefault((question.extender, question.verb), ExtenderReply())
        said.wrong = problem(extender, getattr(extender, f"{question.verb}_verb"), result)
        if not said.wrong:
            try:
                said.of |= READERS[question.verb](extender, question, result.body)
            except ValueError as error:
                said.wrong = str(error)

    def refused(self, names: Sequence[str]) -> dict[str, Verdict]:
        """Those of the feasible nodes that extenders refuse. One is asked after the other, about what is left."""
        refused: dict[str, Verdict] = {}
        for place, extender, said in self._with("filter"):
            if said.wrong and self._ignored(extender, "filter", said):
                continue
            left = [name for name in names if name not in refused]
            kept = [name for name in left if said.of.get(name, NOT_ASKED) is None]
            unknown = tuple(name for name in left if name not in said.of)
            if unknown and not kept:
                self._ask(place, "filter", nodes=unknown)
                return refused | {name: said.of[name] for name in left if name in said.of}
            refused |= {name: verdict for name in left if (verdict := said.of.get(name, NOT_ASKED)) is not None}
        return refused

    def scores(self, names: Sequence[str]) -> Iterator[tuple[str, int, Ints]]:
        """Each extender's address, weight and scores of these nodes; one that fails has no say.

        Nobody is asked before it is known which nodes are left.
        """
        for place, extender, said in self._with("prioritize"):
            if self._filtering:
                continue
            if not said.wrong and not any(name in said.of for name in names):
                self._ask(place, "prioritize", nodes=tuple(names))
            elif not said.wrong:
                scores = np.array([said.of.get(name, 0) for name in names], np.int64)
                yield extender.url_prefix, extender.weight * SCALE, scores

    def candidates(self, found: Sequence[Candidate]) -> list[Candidate]:
        """What extenders leave of the nodes where evictions would make room, and of the victims there."""
        left = list(found)
        for place, extender, said in self._with("preempt"):
            if not left or (said.wrong and self._ignored(extender, "preempt", said)):
                continue
            if not any(each.node in said.of for each in left):
                victims = {each.node: Victims(tuple(_refs(each.victims)), each.violations) for each in left}
                self._ask(place, "preempt", *(pod for each in left for pod in each.victims), victims=victims)
                break
            left = list(_trimmed(left, said.of))
        return left

    def binder(self) -> tuple[Extender, Ask] | None:
        """The extender that binds this pod, if there is one, and the question; the node is still to be filled in."""
        for place, extender, _ in self._with("bind"):
            return extender, Ask(extender=place, verb="bind", pod=self._pod)
        return None

    def _ask(self, place: int, verb: str, *others: Pod, **about: Any) -> None:
        """A question about the pod, in which others are shown, too."""
        labels = {pod.uid: found for pod in (self._whole, *others) if (found := self._labels(pod))}
        self.open.append(Ask(extender=place, verb=verb, pod=self._pod, labels=labels, **about))

    @property
    def _filtering(self) -> bool:
        return any(ask.verb == "filter" for ask in self.open)

    def _with(self, verb: str) -> Iterator[tuple[int, Extender, ExtenderReply]]:
        for place, extender in self._extenders:
            if getattr(extender, f"{verb}_verb"):
                yield place, extender, self._answers.get((place, verb), ExtenderReply())

    def _ignored(self, extender: Extender, verb: str, said: ExtenderReply) -> bool:
        if not extender.ignorable:
            raise PluginError(EXTENDER, verb, said.wrong)
        return True


def in_order(extenders: Sequence[Extender]) -> list[tuple[int, Extender]]:
    """With their place in the configuration; those that may fail unnoticed come last."""
    return sorted(enumerate(extenders), key=lambda entry: entry[1].ignorable)


def labels_for(pod: Pod, profile: Profile, cluster: Cluster) -> dict[str, str]:
    """The labels that extenders are to see on a pod, and that it does not have, or has otherwise."""
    found: dict[str, str] = {}
    for enabled in profile.extender_label_plugins:
        said: dict[str, str] = call_optional(enabled, enabled.plugin.for_extenders, dict, pod, cluster) or {}
        if not all(isinstance(text, str) for pair in said.items() for text in pair):
            raise PluginError(enabled.name, "for_extenders", f"answered {said!r}; labels are texts")
        found |= said
    return {key: value for key, value in found.items() if pod.labels.get(key) != value}


def cares(extender: Extender, pod: Pod) -> bool:
    """Does the pod use a resource that this extender looks after? One that lists none looks after every pod."""
    managed = {resource.name for resource in extender.managed_resources}
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    used = ({*each.resources.requests, *each.resources.limits} for each in containers)
    return not managed or any(managed & names for names in used)


def _trimmed(found: Iterable[Candidate], said: Mapping[str, tuple[set[str], int]]) -> Iterator[Candidate]:
    """Victims that went meanwhile are no victims any more."""
    for candidate in found:
        uids, violations = said.get(candidate.node, (set(), 0))
        victims = tuple(pod for pod in candidate.victims if pod.uid in uids)
        if victims:
            yield Candidate(candidate.node, victims, violations)


def _refs(pods: Iterable[Pod]) -> Iterator[PodRef]:
    return (PodRef(pod.namespace, pod.name, pod.uid) for pod in pods)


# -- reading answers


def problem(extender: Extender, verb: str, result: Result) -> str:
    """What went wrong with an answer, or nothing."""
    if result.status == 200:
        return str(field(result.body, "Error") or "")
    url = f"{extender.url_prefix.rstrip('/')}/{verb}"
    if not result.status:
        return result.message if extender.url_prefix in result.message else f"{url}: {result.message}"
    return f"failed {verb} with extender at URL {url}, code {result.status}"


def field(body: Any, name: str) -> Any:
    """A field by name, in any letter case: extenders written in Go answer in either."""
    if not isinstance(body, Mapping):
        return None
    found = (value for key, value in body.items() if isinstance(key, str) and key.lower() == name.lower())
    return next(found, None)


def _read_filter(extender: Extender, question: Ask, body: Any) -> dict[str, Verdict | None]:
    kept, asked = _kept(extender, body), set(question.nodes)
    strange = next((name for name in kept if name not in asked), None)
    if strange is not None:
        claim = f'extender "{extender.url_prefix}" claims a filtered node "{strange}"'
        raise ValueError(f"{claim} which is not found in the input node list")
    refused: dict[str, Verdict | None] = dict.fromkeys(asked - kept, NOT_KEPT)
    for name, code in (("FailedNodes", UNSCHEDULABLE), ("FailedAndUnresolvableNodes", UNRESOLVABLE)):
        reasons = field(body, name)
        for node, reason in reasons.items() if isinstance(reasons, Mapping) else ():
            if node in refused:
                refused[node] = Verdict(EXTENDER, code, (str(reason),))
    return refused | dict.fromkeys(kept)


def _kept(extender: Extender, body: Any) -> set[str]:
    names = field(body, "NodeNames")
    if extender.node_cache_capable and isinstance(names, list):
        return {str(name) for name in names}
    items = field(field(body, "Nodes"), "items")
    return {str(field(field(each, "metadata"), "name")) for each in items} if isinstance(items, list) else set()


def _read_scores(extender: Extender, question: Ask, body: Any) -> dict[str, int]:  # noqa: ARG001
    scores = dict.fromkeys(question.nodes, 0)
    for each in body if isinstance(body, list) else ():
        host, score = field(each, "Host"), field(each, "Score")
        if isinstance(host, str) and isinstance(score, int):
            if abs(score) > LARGEST_SCORE:
                raise ValueError(f'the score {score} of node "{host}" is out of range')
            scores[host] = score
    return scores


def _read_victims(extender: Extender, question: Ask, body: Any) -> dict[str, tuple[set[str], int]]:
    by_node = field(body, "NodeNameToMetaVictims")
    victims: dict[str, tuple[set[str], int]] = {node: (set(), 0) for node in question.victims}
    for node, each in by_node.items() if isinstance(by_node, Mapping) else ():
        pods = field(each, "Pods")
        uids = {str(field(pod, "UID")) for pod in pods} if isinstance(pods, list) else set()
        if not uids and not extender.ignorable:
            raise ValueError(f'expected at least one victim pod on node "{node}"')
        violations = field(each, "NumPDBViolations")
        victims[node] = (uids, violations if isinstance(violations, int) else 0)
    return victims


READERS: Mapping[str, Any] = {"filter": _read_filter, "prioritize": _read_scores, "preempt": _read_victims}

"""HTTP extenders in a decision: the questions that were asked, the replies, and the questions still to be asked.

A decision does not wait. It uses the replies that are there. If one is missing, the decision notes the question
(`open`), continues as if the extender had no objection, and is made again when the reply has come. Nodes that became
feasible after the question are rejected if other nodes are left, else asked about. No node is asked about twice in an
attempt, so a busy cluster cannot keep a decision asking for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.views import Cluster
from stowplan.framework.config.settings import Extender
from stowplan.framework.decision import UNRESOLVABLE, UNSCHEDULABLE, Candidate, Verdict
from stowplan.framework.plugin_calls import call_optional, wrong
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Ask, PodRef, Victims
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod
from stowplan.objects.texts import shortened

EXTENDER = "Extender"  # the plugin in a verdict of an extender, as in kube-scheduler
LARGEST_SCORE = 2**31
SCALE = 10  # extenders score 0..10, plugins 0..100
NOT_ASKED = Verdict(EXTENDER, UNSCHEDULABLE, ("node(s) became feasible after the extender was asked",))
NOT_RETURNED = Verdict(EXTENDER, UNRESOLVABLE, ())  # missing in the reply, without a reason
Labels: TypeAlias = Callable[[Pod], dict[str, str]]


class ExtenderReply:
    """An extender's replies to one verb in this attempt: an entry per node, or an error."""

    def __init__(self) -> None:
        self.by_node: dict[str, Any] = {}
        self.error = ""


class Consultation:
    """One pod's questions to the extenders that are interested in it, over all decisions of one attempt."""

    def __init__(self, extenders: Sequence[Extender], pod: Pod, labels: Labels = lambda _: {}) -> None:
        """`labels`: the labels that extenders see on a pod in addition to its own."""
        self._pod, self._labels = pod, labels
        self._ref = PodRef(pod.namespace, pod.name, pod.uid)
        self._extenders = [(place, each) for place, each in in_order(extenders) if is_interested(each, pod)]
        self._replies: dict[tuple[int, str], ExtenderReply] = {}
        self.open: list[Ask] = []

    def __bool__(self) -> bool:
        return bool(self._extenders)

    def answer(self, question: Ask, result: Result) -> None:
        """Store the reply to a question, or its error."""
        extender = next(each for place, each in self._extenders if place == question.extender)
        reply = self._replies.setdefault((question.extender, question.verb), ExtenderReply())
        reply.error = problem(extender, getattr(extender, f"{question.verb}_verb"), result)
        if not reply.error:
            try:
                reply.by_node |= READERS[question.verb](extender, question, result.body)
            except ValueError as error:
                reply.error = str(error)

    def refused(self, names: Sequence[str]) -> dict[str, Verdict]:
        """Return the feasible nodes that extenders reject. Each extender is asked about the nodes that are left."""
        refused: dict[str, Verdict] = {}
        for place, extender, reply in self._with("filter"):
            if reply.error and self._ignored(extender, "filter", reply):
                continue
            left = [name for name in names if name not in refused]
            kept = [name for name in left if reply.by_node.get(name, NOT_ASKED) is None]
            unknown = tuple(name for name in left if name not in reply.by_node)
            if unknown and not kept:
                self._ask(place, "filter", nodes=unknown)
                return refused | {name: reply.by_node[name] for name in left if name in reply.by_node}
            refused |= {name: verdict for name in left if (verdict := reply.by_node.get(name, NOT_ASKED)) is not None}
        return refused

    def scores(self, names: Sequence[str]) -> Iterator[tuple[str, int, Ints]]:
        """Yield each extender's address, weight and scores of these nodes. An extender that fails is left out.

        No extender is asked before all replies to filter are there.
        """
        for place, extender, reply in self._with("prioritize"):
            if self._filtering:
                continue
            if not reply.error and not any(name in reply.by_node for name in names):
                self._ask(place, "prioritize", nodes=tuple(names))
            elif not reply.error:
                scores = np.array([reply.by_node.get(name, 0) for name in names], np.int64)
                yield extender.url_prefix, extender.weight * SCALE, scores

    def candidates(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates, and their victims, that the extenders accept."""
        left = list(found)
        for place, extender, reply in self._with("preempt"):
            if not left or (reply.error and self._ignored(extender, "preempt", reply)):
                continue
            if not any(each.node in reply.by_node for each in left):
                victims = {each.node: Victims(tuple(_refs(each.victims)), each.violations) for each in left}
                self._ask(place, "preempt", *(pod for each in left for pod in each.victims), victims=victims)
                break
            left = list(_accepted(left, reply.by_node))
        return left

    def binder(self) -> tuple[Extender, Ask] | None:
        """Return the extender that binds this pod, if there is one, and the question without the node."""
        for place, extender, _ in self._with("bind"):
            return extender, Ask(extender=place, verb="bind", pod=self._ref)
        return None

    def _ask(self, place: int, verb: str, *others: Pod, **about: Any) -> None:
        """Note a question about the pod, in which other pods appear, too."""
        labels = {pod.uid: found for pod in (self._pod, *others) if (found := self._labels(pod))}
        self.open.append(Ask(extender=place, verb=verb, pod=self._ref, labels=labels, **about))

    @property
    def _filtering(self) -> bool:
        return any(ask.verb == "filter" for ask in self.open)

    def _with(self, verb: str) -> Iterator[tuple[int, Extender, ExtenderReply]]:
        for place, extender in self._extenders:
            if getattr(extender, f"{verb}_verb"):
                yield place, extender, self._replies.get((place, verb), ExtenderReply())

    def _ignored(self, extender: Extender, verb: str, reply: ExtenderReply) -> bool:
        if not extender.ignorable:
            raise PluginError(EXTENDER, verb, reply.error)
        return True


def in_order(extenders: Sequence[Extender]) -> list[tuple[int, Extender]]:
    """Return the extenders with their place in the configuration; ignorable ones come last."""
    return sorted(enumerate(extenders), key=lambda entry: entry[1].ignorable)


def labels_for(pod: Pod, profile: Profile, cluster: Cluster) -> dict[str, str]:
    """Return the labels that extenders see on a pod and that the pod does not have, or has with another value."""
    found: dict[str, str] = {}
    for enabled in profile.extender_label_plugins:
        labels: dict[str, str] = call_optional(enabled, enabled.plugin.for_extenders, dict, pod, cluster) or {}
        if not all(isinstance(text, str) for pair in labels.items() for text in pair):
            raise wrong(enabled, enabled.plugin.for_extenders, labels, "labels are texts")
        found |= labels
    return {key: value for key, value in found.items() if pod.labels.get(key) != value}


def is_interested(extender: Extender, pod: Pod) -> bool:
    """True if the pod uses a resource that the extender manages, or if the extender lists none."""
    managed = {resource.name for resource in extender.managed_resources}
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    used = ({*each.resources.requests, *each.resources.limits} for each in containers)
    return not managed or any(managed & names for names in used)


def _accepted(found: Iterable[Candidate], reply: Mapping[str, tuple[set[str], int]]) -> Iterator[Candidate]:
    """Yield the candidates with the victims that the extender left. Victims that were deleted meanwhile drop out."""
    for candidate in found:
        uids, violations = reply.get(candidate.node, (set(), 0))
        victims = tuple(pod for pod in candidate.victims if pod.uid in uids)
        if victims:
            yield Candidate(candidate.node, victims, violations)


def _refs(pods: Iterable[Pod]) -> Iterator[PodRef]:
    return (PodRef(pod.namespace, pod.name, pod.uid) for pod in pods)


# -- reading replies


def problem(extender: Extender, verb: str, result: Result) -> str:
    """Return the error of a reply, or an empty text."""
    if result.status == 200:
        return str(field(result.body, "Error") or "")
    url = f"{extender.url_prefix.rstrip('/')}/{verb}"
    if not result.status:
        return result.message if extender.url_prefix in result.message else f"{url}: {result.message}"
    return f"failed {verb} with extender at URL {url}, code {result.status}"


def field(body: Any, name: str) -> Any:
    """Return a field by name, in any letter case: extenders written in Go use either."""
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
    refused: dict[str, Verdict | None] = dict.fromkeys(asked - kept, NOT_RETURNED)
    for name, code in (("FailedNodes", UNSCHEDULABLE), ("FailedAndUnresolvableNodes", UNRESOLVABLE)):
        reasons = field(body, name)
        for node, reason in reasons.items() if isinstance(reasons, Mapping) else ():
            if node in refused:
                refused[node] = Verdict(EXTENDER, code, (shortened(str(reason)),))
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

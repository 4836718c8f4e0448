"""From reserve to post_bind: what a plugin remembers of pods that get nodes, and whether it forgets the right things.

    undone       reserve, unreserve: the answers are as before
    bound        reserve, permit, pre_bind, post_bind: none of them fails, and their answers are well formed
    overlapping  reserve A, reserve B, unreserve A: the answers are as if only B had been reserved; and vice versa
    remembering  the reservations of some pods stand while another pod is asked about

Each works with a copy of the plugin, so that what it leaves behind does not confuse the others. A plugin that cannot be
copied is used itself, and its reservations are given up in the end.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.checks.answers import Asked
from stowplan.framework.checks.called_plugin import Answers, BrokenAnswer, Problem, differ
from stowplan.framework.decision import RejectPod
from stowplan.objects.actions import AnyAction
from stowplan.objects.pods import Pod

UNDO = "unreserve does not undo reserve"
OVERLAP = "unreserve of one pod changes what another one reserved"
MOST = 4  # reservations that stand


# -- what is checked


def undone(asked: Asked) -> Iterator[Problem]:
    """A reservation that is given up leaves no trace."""
    if not _reserves(asked):
        return
    with _notebook(asked) as book:
        before = book.answers()
        if book.reserve(asked.pod):
            book.give_up(asked.pod)
            yield from _changed(UNDO, book.answers(), before)


def bound(asked: Asked) -> Iterator[Problem]:
    """The pod gets the first feasible node, is reserved, permitted, pre-bound, and bound."""
    if not any(map(asked.has, ("reserve", "permit", "pre_bind", "post_bind"))):
        return
    with _notebook(asked) as book:
        cluster = Cluster(book.state)
        names = book.asked.feasible(cluster.nodes).names
        if names:
            book.state.add_pod(asked.pod, names[0])
            book.standing[asked.pod.uid] = Standing(asked.pod, names[0], cluster)
            yield from _answer(book.asked, "reserve", names[0], cluster, (RejectPod,), "None or RejectPod")
            seconds = "None, RejectPod or seconds to wait"
            yield from _answer(book.asked, "permit", names[0], cluster, (RejectPod, int, float), seconds)
            for method in ("pre_bind", "post_bind"):
                yield from _actions(book.asked, method, names[0], cluster)


def overlapping(asked: Asked) -> Iterator[Problem]:
    """Of two reservations one is given up: the other one stands as if it had been alone."""
    if not _reserves(asked):
        return
    pods = tuple(_sibling(asked.pod, word) for word in ("first", "second"))
    for given_up, kept in (pods, pods[::-1]):
        with _notebook(asked) as book:
            if not all(book.reserve(pod) for pod in pods):
                return
            node_name = book.standing[kept.uid].node_name
            book.give_up(given_up)
            both = book.answers()
        with _notebook(asked) as book:
            if book.reserve(kept, node_name):
                yield from _changed(OVERLAP, both, book.answers())


@contextmanager
def remembering(asked: Asked) -> Iterator[Asked]:
    """The same question while the reservations of a few other pods stand, one of them of a pod just like this one."""
    others = [pod for pod in asked.situation.waiting if pod.uid != asked.pod.uid]
    with _notebook(asked) as book:
        for pod in (_sibling(asked.pod, "before"), *others)[:MOST]:
            book.reserve(pod)
        placed = tuple(_placed(each.pod, each.node_name) for each in book.standing.values())
        situation = replace(asked.situation, placed=(*asked.situation.placed, *placed))
        yield Asked(book.asked.plugin, situation, asked.says, asked.lines)


def _reserves(asked: Asked) -> bool:
    return asked.has("reserve") and asked.has("unreserve")


# -- reservations


class Standing(NamedTuple):
    """A reservation: of which pod, where, and what the plugin saw."""

    pod: Pod
    node_name: str
    cluster: Cluster


class Notebook:
    """A copy of a plugin in a cluster of its own, and the reservations that stand."""

    def __init__(self, asked: Asked) -> None:
        self.copied, plugin = _copied(asked.plugin)
        self.asked = Asked(plugin, asked.situation, asked.says, asked.lines)
        self.state = self.asked.state()
        self.standing: dict[str, Standing] = {}  # by the pod's uid

    def reserve(self, pod: Pod, node_name: str = "") -> bool:
        """Give a pod a node: this one, or a feasible one, if possible without a reservation. False if none gets it."""
        cluster = Cluster(self.state)
        asked = Asked(self.asked.plugin, replace(self.asked.situation, pod=pod), self.asked.says, self.asked.lines)
        names, taken = asked.feasible(cluster.nodes).names, {each.node_name for each in self.standing.values()}
        node_name = node_name or next((name for name in names if name not in taken), "".join(names[:1]))
        if not node_name:
            return False
        self.state.add_pod(pod, node_name)
        self.standing[pod.uid] = Standing(pod, node_name, cluster)
        if asked.ask("reserve", lambda: asked.plugin.reserve(pod, node_name, cluster)) is None:
            return True
        self.give_up(pod)
        return False

    def give_up(self, pod: Pod) -> None:
        _, node_name, cluster = self.standing.pop(pod.uid)
        if self.asked.has("unreserve"):
            self.asked.ask("unreserve", lambda: self.asked.plugin.unreserve(pod, node_name, cluster))
        if pod.uid in self.state.pods:
            self.state.remove_pod(pod.uid)

    def answers(self) -> dict[str, Answers]:
        """Return what a decision gets to know, by method."""
        asked, cluster, found = self.asked, Cluster(self.state), dict[str, Answers]()
        filters, left = asked.has("filter"), cluster.nodes
        if asked.has("pre_filter"):
            allowed = asked.pre_filtered(cluster)
            filters, left = filters and allowed is not None, left if allowed is None else allowed
            names = set(left.names)
            found["pre_filter"] = {
                name: "SKIP" if allowed is None else "passed" if name in names else "left out"
                for name in cluster.nodes.names
            }
        if filters and len(left):
            found["filter"] = asked.filtered(left)
        if asked.has("score") and len(left):
            found["score"] = asked.scored(left)
        return found


@contextmanager
def _notebook(asked: Asked) -> Iterator[Notebook]:
    book = Notebook(asked)
    try:
        yield book
    finally:
        if not book.copied:
            for each in reversed(tuple(book.standing.values())):
                try:
                    book.give_up(each.pod)
                except BrokenAnswer:
                    continue  # it was found before, or will be


def _copied(plugin: Any) -> tuple[bool, Any]:
    try:
        return True, copy.deepcopy(plugin)
    except Exception:  # whatever a plugin has in its attributes
        return False, plugin


def _changed(what: str, found: dict[str, Answers], expected: dict[str, Answers]) -> Iterator[Problem]:
    for method, answers in found.items():
        before = expected.get(method, {})
        common = {name: answer for name, answer in answers.items() if name in before}
        yield from differ(f"{what}: {method} gives another answer", common, before)


def _sibling(pod: Pod, word: str) -> Pod:
    """Return another pod that differs by its name only."""
    metadata = msgspec.structs.replace(pod.metadata, name=f"{pod.name}-{word}", uid=f"{pod.uid}-{word}")
    return msgspec.structs.replace(pod, metadata=metadata)


def _placed(pod: Pod, node_name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))


# -- answers on the way


def _answer(
    asked: Asked, method: str, node_name: str, cluster: Cluster, kinds: tuple[type, ...], right: str
) -> Iterator[Problem]:
    if asked.has(method):
        answer = asked.ask(method, lambda: getattr(asked.plugin, method)(asked.pod, node_name, cluster))
        asked.says.note(method, answer is not None)
        if answer is not None and (not isinstance(answer, kinds) or isinstance(answer, bool)):
            yield f"{method} gives a wrong answer", f"{answer!r}; {right} was due"
        elif isinstance(answer, float) and not math.isfinite(answer):
            yield f"{method} gives a wrong answer", f"{answer!r}; a finite number of seconds was due"


def _actions(asked: Asked, method: str, node_name: str, cluster: Cluster) -> Iterator[Problem]:
    if not asked.has(method):
        return
    found = asked.ask(method, lambda: list(getattr(asked.plugin, method)(asked.pod, node_name, cluster) or ()))
    asked.says.note(method, bool(found))
    for each in found:
        if not isinstance(each, AnyAction):
            yield f"{method} gives a wrong answer", f"{each!r}; only actions (Patch, Create, Delete) are right"

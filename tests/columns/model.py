"""A model of the columns: the same cluster in plain dictionaries, counted pod by pod. Tests compare both."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

from stowplan.columns.state import ClusterState
from stowplan.columns.trial import Trial
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects import requests
from stowplan.objects.affinity import PodQuery
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import LabelRequirement
from stowplan.testing.comparison import Question

IN_X = LabelRequirement("app", "In", ("x",))
HAS_TIER = LabelRequirement("tier", "Exists")
QUERIES: tuple[tuple[PodQuery, ...], ...] = (
    (PodQuery(frozenset({"one"}), (IN_X,)),),
    (PodQuery(frozenset({"one", "two"}), (HAS_TIER,)),),
    (PodQuery(None, ()),),
    (PodQuery(None, None),),
    (PodQuery(frozenset({"two"}), (LabelRequirement("app", "NotIn", ("x",)),)),),
    (PodQuery(None, (LabelRequirement("app", "In", ("x", "y")),)), PodQuery(frozenset({"one"}), (HAS_TIER,))),
)


@dataclass
class Model:
    """The objects themselves, nothing derived."""

    nodes: dict[str, Node] = field(default_factory=dict)
    placed: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    nominated: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    held: dict[str, tuple[str, dict[str, int]]] = field(default_factory=dict)
    others: dict[tuple[type, str], Object] = field(default_factory=dict)

    def copy(self) -> Model:
        return Model(*(dict(getattr(self, each.name)) for each in fields(self)))

    def take(self, other: Model) -> None:
        for each in fields(self):
            setattr(self, each.name, dict(getattr(other, each.name)))

    def put_pod(self, pod: Pod) -> None:
        """As the API says it."""
        self.drop_pod(pod.uid)
        if pod.status.phase in ("Succeeded", "Failed"):
            return
        if pod.node_name:
            self.placed[pod.uid] = (pod, pod.node_name)
        elif pod.nominated_node:
            self.nominated[pod.uid] = (pod, pod.nominated_node)

    def drop_pod(self, uid: str) -> None:
        self.placed.pop(uid, None)
        self.nominated.pop(uid, None)

    def rebuilt(self) -> ClusterState:
        """A state that has never seen anything else."""
        state = ClusterState()
        for other in self.others.values():
            state.put(other)
        for node in self.nodes.values():
            state.table.put(state._row(node.name), node)
        for pod, name in self.placed.values():
            state.add_pod(pod, name)
        for pod, name in self.nominated.values():
            state.nominated_pods.add(pod, name)
        for key, (name, amounts) in self.held.items():
            state.hold(key, name, amounts)
        return state


# -- counted pod by pod


def counted_by_hand(model: Model, question: Question) -> dict[str, int]:
    """How many pods on each node match: by asking every pod."""
    queries, settled = question
    numbers: Counter[str] = Counter()
    for pod, name in model.placed.values():
        if settled and (pod.terminating or not queries[0].selector):
            continue
        numbers[name] += all(query.matches(pod.namespace, pod.labels) for query in queries)
    return dict(+numbers)


def requested_by_hand(model: Model) -> dict[str, dict[str, int]]:
    """resource → node → what its pods and reservations take of it."""
    sums: dict[str, Counter[str]] = {}
    for pod, name in model.placed.values():
        for resource, amount in {"pods": 1, **requests.running(pod)}.items():
            sums.setdefault(resource, Counter())[name] += amount
    for name, amounts in model.held.values():
        for resource, amount in amounts.items():
            sums.setdefault(resource, Counter())[name] += amount
    return {resource: dict(+numbers) for resource, numbers in sums.items() if +numbers}


# -- trial programs: nested lists of operations


def play(program: list[tuple[Any, ...]], state: ClusterState, trial: Trial, model: Model, profile: Profile) -> None:
    """Do what a program says inside a trial, to the state and to its model. What makes no sense now is left out."""
    saved: list[tuple[int, Model]] = []
    for operation, *arguments in program:
        match operation, arguments:
            case "add", (pod, name, as_extension):
                if pod.uid not in model.placed and pod.uid not in model.nominated:
                    trial.add_pod(pod, name, as_extension=as_extension)
                    model.placed[pod.uid] = (pod, name)
            case "remove", (uid, as_extension):
                if model.placed.pop(uid, None):
                    trial.remove_pod(uid, as_extension=as_extension)
            case "hold", (key, name, amounts):
                trial.hold(key, name, amounts)
                model.held[key] = (name, amounts)
            case "release", (key,):
                if model.held.pop(key, None):
                    trial.release(key)
            case "nominate", (pod, name):
                if pod.uid not in model.placed:
                    trial.nominate(pod, name)
                    model.nominated[pod.uid] = (pod, name)
            case "assume", (found,):
                trial.assume(found)
                model.others[type(found), found.key] = found
            case "ask", (number, settled):
                state.count(*QUERIES[number], settled=settled)
            case "decide", (pod,):
                schedule_one(pod, state, profile)
            case "save", ():
                saved.append((trial.savepoint(), model.copy()))
            case "undo", ():
                if saved:
                    mark, before = saved.pop()
                    trial.undo_to(mark)
                    model.take(before)
            case "trial", (kept, inner):
                try_out(inner, state, model, profile, kept)


def try_out(program: list[tuple[Any, ...]], state: ClusterState, model: Model, profile: Profile, kept: bool) -> None:
    before = model.copy()
    with state.trial() as trial:
        play(program, state, trial, model, profile)
        if kept:
            trial.keep()
    if not kept:
        model.take(before)

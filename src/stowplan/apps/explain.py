"""`stowplan explain [POD]`: where a pod would go as things stand, and why not elsewhere. It changes nothing.

A pod that has a node already is looked at as if it had none, beside all the others. Without a POD every pending one is
looked at, each by itself. HTTP extenders are not asked, which is said; pods of other schedulers are not decided.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import track
from rich.table import Table

from stowplan.apps import gathering, printing, wiring
from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster
from stowplan.framework.config import Configuration
from stowplan.framework.evaluate import schedule_one
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import Decision
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.priority import prioritised
from stowplan.objects.workloads import PriorityClass

NEAREST = 5
POD = ("", "pod", "pods", "po")  # how kubectl names the kind, before the slash


@dataclass(frozen=True)
class Question:
    """Which pods, where their cluster is to be found, by which configuration, and how to answer."""

    pod: str = ""
    namespace: str = ""  # empty: the context's, or else "default"
    everywhere: bool = False
    files: tuple[Path, ...] = ()
    config: Path | None = None
    kubeconfig: str = ""
    context: str = ""
    output: str = "table"


def run(question: Question) -> int:
    """0 if the pod, or each of them, has a place, 1 if one has none."""
    if question.pod and question.everywhere:
        raise ConfigError("a pod cannot be named across all namespaces", remedy="leave POD out, or give -n")
    name = _pod_name(question.pod)
    configuration, profiles = _configured(question.config)
    objects, namespace = _gathered(question, profiles)
    case, extenders = Case(objects, profiles), [each.url_prefix for each in configuration.extenders]
    if extenders:
        click.echo(f"Not asked: the extenders {', '.join(extenders)}. They may decide otherwise.", err=True)
    if not question.pod:
        return _explain_pending(case, question, "" if question.everywhere else namespace, extenders)
    decision = case.decide(case.pod(f"{namespace}/{name}"))
    bound_to = case.pod(decision.pod.key).node_name
    if question.output == "table":
        show(Console(highlight=False, markup=False), decision, case.state, bound_to)
    else:
        more = {"boundTo": bound_to, "extendersNotAsked": extenders}
        printing.echo(printing.decided(decision) | more, question.output)
    return 0 if decision.node is not None else 1


def _pod_name(given: str) -> str:
    kind, _, name = given.rpartition("/")
    if kind not in POD:
        raise ConfigError(f"{given!r} is no pod", remedy="give a pod's name, and its namespace by -n")
    return name


def _configured(file: Path | None) -> tuple[Configuration, dict[str, Profile]]:
    """Without a file the default profile, for the names that kube-scheduler and `stowplan run` serve by themselves."""
    if file is not None:
        return wiring.read_configuration(file)
    configuration, profiles = wiring.defaults()
    return configuration, profiles | {wiring.OWN_NAME: next(iter(profiles.values()))}


def _gathered(question: Question, profiles: dict[str, Profile]) -> tuple[list[Object], str]:
    """The objects that decide, and the namespace that is meant."""
    if question.files:
        return gathering.from_files(question.files)[0], question.namespace or "default"
    wanted = frozenset[str]().union(*(profile.reads for profile in profiles.values()))
    with Console(stderr=True).status("reading the cluster"):
        objects, own = gathering.from_cluster(wanted, kubeconfig=question.kubeconfig, context=question.context)
    return objects, question.namespace or own


def _explain_pending(case: Case, question: Question, namespace: str, extenders: list[str]) -> int:
    pending = [pod for pod in case.pods.values() if pod.pending and namespace in ("", pod.namespace)]
    others = {pod.key: pod.scheduler_name for pod in pending if pod.scheduler_name not in case.profiles}
    if others:
        names = ", ".join(sorted(set(others.values())))
        click.echo(f"Left out: {len(others)} pod(s) of schedulers that have no profile here: {names}", err=True)
    ours = [pod for pod in pending if pod.key not in others]
    notes = Console(stderr=True)
    decisions = [case.decide(pod) for pod in track(ours, "deciding", console=notes, disable=not sys.stderr.isatty())]
    if question.output == "table":
        show_all(Console(highlight=False, markup=False), decisions)
    else:
        items = [printing.decided(decision) for decision in decisions]
        more = {"extendersNotAsked": extenders, "otherSchedulers": others}
        printing.echo({"apiVersion": printing.VERSION, "kind": "DecisionList", "items": items} | more, question.output)
    return 0 if all(decision.node is not None for decision in decisions) else 1


class Case:
    """A cluster as these objects have it, and the pods in it."""

    def __init__(self, objects: Iterable[Object], profiles: dict[str, Profile]) -> None:
        self.state, self.pods, self.profiles = ClusterState(), dict[str, Pod](), profiles
        for each in map(_identified, objects):
            self.state.apply(Put(each))
            if isinstance(each, Pod):
                self.pods[each.key] = each
        self.state.known = {pod.uid: pod for pod in self.pods.values() if not pod.finished}
        for pod in self.pods.values():
            if pod.pending and pod.nominated_node and not pod.terminating:
                self.state.nominate(self._with_priority(pod), pod.nominated_node)

    def pod(self, key: str) -> Pod:
        if key not in self.pods:
            raise ConfigError(f"there is no pod {key}", remedy="name it as it is, and its namespace by -n")
        return self.pods[key]

    def decide(self, pod: Pod) -> Decision:
        """About one pod, which from now on counts as having no node."""
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            problem = f"{pod.key} has schedulerName {pod.scheduler_name}, of which there is no profile"
            remedy = f"there is {', '.join(self.profiles)}; name that scheduler's configuration by --config"
            raise ConfigError(problem, remedy=remedy)
        unbound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
        if pod.uid in self.state.pods:
            self.state.remove_pod(pod.uid)
        return schedule_one(self._with_priority(unbound), self.state, profile)

    def _with_priority(self, pod: Pod) -> Pod:
        return pod if pod.spec.priority is not None else prioritised(pod, self.state.store.every(PriorityClass))


def _identified(found: Object) -> Object:
    """Pods are told apart by their uids, and one that somebody wrote by hand has none."""
    if not isinstance(found, Pod) or found.uid:
        return found
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid=found.key))


# -- for people


def show_all(console: Console, decisions: list[Decision]) -> None:
    if not decisions:
        console.print("No pod is pending.")
        return
    table = Table("namespace", "pod", "node", "why")
    for decision in decisions:
        gate = decision.gated
        why = _ahead(decision) if decision.node else ", ".join(gate.reasons) if gate else decision.full_message
        table.add_row(decision.pod.namespace, decision.pod.name, decision.node or "", why)
    console.print(table)


def show(console: Console, decision: Decision, state: ClusterState, bound_to: str) -> None:
    if bound_to:
        console.print(f"{decision.pod.key} is on {bound_to}; this is how it would be decided now.")
    if decision.gated is not None:
        console.print(f"{decision.pod.key} is held back: {', '.join(decision.gated.reasons)}")
        return
    if decision.node is None:
        console.print(decision.full_message)
        for line in nearest(decision, state):
            console.print(f"  {line}")
    else:
        console.print(_won(decision))
        console.print(_scores(decision))
    if decision.trail.verdicts:
        console.print(_rejections(decision))


def _won(decision: Decision) -> str:
    return f"{decision.pod.key} goes to {decision.node} ({_ahead(decision)})"


def _ahead(decision: Decision) -> str:
    totals = sorted(decision.trail.totals.tolist(), reverse=True)
    ahead = totals[0] - totals[1] if len(totals) > 1 else None
    how = "the only node left" if ahead is None else f"{ahead} ahead" if ahead else "drawn among the best"
    return f"{how}; {len(totals)} of {len(decision.trail.names)} nodes feasible"


def _scores(decision: Decision) -> Table:
    weights = {name: weight for name, (weight, _) in decision.trail.scores.items()}
    table = Table("node", "total", *(f"{name} ×{weight}" for name, weight in weights.items()))
    rows = sorted(decision.trail.scored(), key=lambda row: (-row[2], row[0] != decision.node, row[0]))
    for name, each, total in rows[:20]:
        table.add_row(name, str(total), *(str(each[plugin]) for plugin in weights))
    if len(rows) > 20:
        table.caption = f"and {len(rows) - 20} more; -o json has all"
    return table


def _rejections(decision: Decision) -> Table:
    table = Table("node", "rejected by", "because")
    refused = [(name, verdict) for name, verdict in decision.trail.rejections() if verdict is not None]
    for name, verdict in refused[:50]:
        table.add_row(name, verdict.plugin, ", ".join(verdict.reasons))
    if len(refused) > 50:
        table.caption = f"and {len(refused) - 50} more; -o json has all"
    return table


def nearest(decision: Decision, state: ClusterState) -> Iterator[str]:
    """The nodes that lack least of what the pod asks for, those that nothing but resources speaks against."""
    nodes = Cluster(state).nodes
    lacking: list[tuple[float, str]] = []
    for at, (name, verdict) in enumerate(decision.trail.rejections()):
        if verdict is not None and verdict.plugin == "NodeResourcesFit":
            short = dict(_short(decision.pod, nodes, at))
            share = max((amount / decision.pod.request[what] for what, amount in short.items()), default=0.0)
            lacking.append((share, f"{name} lacks {', '.join(_amount(*each) for each in short.items()) or 'room'}"))
    return (text for _, text in sorted(lacking)[:NEAREST])


def _short(pod: Pod, nodes: Any, at: int) -> Iterator[tuple[str, int]]:
    for resource, wanted in pod.request.items():
        missing = int(wanted) - int(nodes.free[resource][at])
        if wanted and missing > 0:
            yield resource, missing


def _amount(resource: str, missing: int) -> str:
    if resource == "cpu":
        return f"{missing}m cpu" if missing % 1000 else f"{missing // 1000} cpu"
    if resource in ("memory", "ephemeral-storage"):
        return f"{-(-missing // 2**20)}Mi {resource}"
    return f"{missing} {resource}"

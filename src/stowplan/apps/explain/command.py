"""`stowplan explain [POD]`: where a pod would go as things stand, and why not elsewhere. It changes nothing.

A pod that has a node already is looked at as if it had none, beside all the others. Without a POD every pending one is
looked at, each by itself, or with its group. HTTP extenders are not asked, which is said; pods of other schedulers are
not decided.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from stowplan.apps import cluster_objects, printing, profile_loader
from stowplan.apps.explain.output import show, show_all
from stowplan.apps.explain.snapshot import Explanation, Snapshot
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object

POD = ("", "pod", "pods", "po")  # how kubectl names the kind, before the slash


@dataclass(frozen=True)
class ExplainOptions:
    """Which pods, where their cluster is to be found, by which configuration, and how to answer."""

    pod: str = ""
    namespace: str = ""  # empty: the context's, or else "default"
    everywhere: bool = False
    files: tuple[Path, ...] = ()
    config: Path | None = None
    kubeconfig: str = ""
    context: str = ""
    output: str = "table"


def run(question: ExplainOptions) -> int:
    """0 if the pod, or each of them, has a place, 1 if one has none."""
    if question.pod and question.everywhere:
        raise ConfigError("a pod cannot be named across all namespaces", remedy="leave POD out, or give -n")
    name = _pod_name(question.pod)
    configuration, profiles = _configured(question.config)
    objects, namespace = _gathered(question, profiles)
    case, extenders = Snapshot(objects, profiles), [each.url_prefix for each in configuration.extenders]
    if extenders:
        click.echo(f"Not asked: the extenders {', '.join(extenders)}. They may decide otherwise.", err=True)
    if not question.pod:
        return _explain_pending(case, question, "" if question.everywhere else namespace, extenders)
    pod = case.pod(f"{namespace}/{name}")
    answer = case.answer(pod)
    if question.output == "table":
        show(Console(highlight=False, markup=False), answer, case.state, pod.node_name)
    else:
        more = {"boundTo": pod.node_name, "extendersNotAsked": extenders}
        printing.echo(_answered(answer) | more, question.output)
    return 0 if answer.node is not None else 1


def _answered(answer: Explanation) -> dict[str, Any]:
    """For programs; a pod that is in a group has, besides what was found for it alone, what became of the group."""
    found, together = printing.decided(answer.decision), answer.group
    if answer.decision.gated is not None:
        found["message"] = answer.why_not
    if together is None:
        return found
    group = {"name": together.name, "needed": together.needed, "whole": together.whole, "nodes": together.nodes}
    return found | {"node": answer.node, "message": answer.because, "podGroup": group}


def _pod_name(given: str) -> str:
    kind, _, name = given.rpartition("/")
    if kind not in POD:
        raise ConfigError(f"{given!r} is no pod", remedy="give a pod's name, and its namespace by -n")
    return name


def _configured(file: Path | None) -> tuple[Configuration, dict[str, Profile]]:
    """Without a file the default profile, for the names that kube-scheduler and `stowplan run` serve by themselves."""
    if file is not None:
        return profile_loader.read_configuration(file)
    configuration, profiles = profile_loader.defaults()
    return configuration, profiles | {profile_loader.OWN_NAME: next(iter(profiles.values()))}


def _gathered(question: ExplainOptions, profiles: dict[str, Profile]) -> tuple[list[Object], str]:
    """The objects that decide, and the namespace that is meant."""
    if question.files:
        return cluster_objects.from_files(question.files)[0], question.namespace or "default"
    wanted = frozenset[str]().union(*(profile.reads for profile in profiles.values()))
    with Console(stderr=True).status("reading the cluster"):
        objects, own = cluster_objects.from_cluster(wanted, kubeconfig=question.kubeconfig, context=question.context)
    return objects, question.namespace or own


def _explain_pending(case: Snapshot, question: ExplainOptions, namespace: str, extenders: list[str]) -> int:
    pending = [pod for pod in case.pods.values() if pod.pending and namespace in ("", pod.namespace)]
    others = {pod.key: pod.scheduler_name for pod in pending if pod.scheduler_name not in case.profiles}
    if others:
        names = ", ".join(sorted(set(others.values())))
        click.echo(f"Left out: {len(others)} pod(s) of schedulers that have no profile here: {names}", err=True)
    ours = [pod for pod in pending if pod.key not in others]
    notes = Console(stderr=True)
    answers = [case.answer(pod) for pod in track(ours, "deciding", console=notes, disable=not sys.stderr.isatty())]
    if question.output == "table":
        show_all(Console(highlight=False, markup=False), answers)
    else:
        items = [_answered(answer) for answer in answers]
        more = {"extendersNotAsked": extenders, "otherSchedulers": others}
        printing.echo({"apiVersion": printing.VERSION, "kind": "DecisionList", "items": items} | more, question.output)
    return 0 if all(answer.node is not None for answer in answers) else 1

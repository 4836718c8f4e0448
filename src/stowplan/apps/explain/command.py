"""`stowplan explain [POD]`: on which node a pod would be scheduled now, and why not elsewhere. It changes nothing.

A pod that has a node is explained as if it had none. Without POD each pending pod is explained, by itself or with its
group. HTTP extenders are not asked; the output says so. Pods of other schedulers are not explained.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from stowplan.apps import cluster_objects, json_output, plugin_kinds, profile_loader
from stowplan.apps.explain.output import show, show_all
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.engine.explain import Explanation
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object

POD_PREFIXES = ("", "pod", "pods", "po")  # before the slash, as kubectl accepts them


@dataclass(frozen=True)
class ExplainOptions:
    """The command line."""

    pod: str = ""
    namespace: str = ""  # empty: that of the context, or "default"
    everywhere: bool = False
    files: tuple[Path, ...] = ()
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    kubeconfig: str = ""
    context: str = ""
    output: str = "table"


def run(options: ExplainOptions) -> int:
    """Explain one pod or all pending pods. Return 0 if each fits, 1 if one does not."""
    if options.pod and options.everywhere:
        raise ConfigError("found both POD and --all-namespaces", remedy="leave POD out, or name its namespace with -n")
    name = _pod_name(options.pod)
    configuration, profiles = _configured(options)
    objects, namespace = _read_objects(options, profiles)
    snapshot, extenders = Snapshot(objects, profiles), [each.url_prefix for each in configuration.extenders]
    if extenders:
        click.echo(
            f"Not asked: the extenders {', '.join(extenders)}. They may reject nodes or change scores.", err=True
        )
    if not options.pod:
        return _explain_pending(snapshot, options, "" if options.everywhere else namespace, extenders)
    pod = snapshot.pod(f"{namespace}/{name}")
    answer = snapshot.answer(pod)
    if options.output == "table":
        show(Console(highlight=False, markup=False), answer, snapshot.state, pod.node_name)
    else:
        more = {"boundTo": pod.node_name, "extendersNotAsked": extenders}
        json_output.echo(_as_json(answer) | more, options.output)
    return 0 if answer.node is not None else 1


def _as_json(answer: Explanation) -> dict[str, Any]:
    """Return the JSON of an explanation; that of a pod in a group also has the outcome of the group."""
    found, group = json_output.decision(answer.decision), answer.group
    if answer.decision.gated is not None:
        found["message"] = answer.why_not
    if group is None:
        return found | {"node": None, "message": answer.because} if answer.because else found
    outcome = {"name": group.name, "needed": group.needed, "whole": group.whole, "nodes": group.nodes}
    return found | {"node": answer.node, "message": answer.because, "podGroup": outcome}


def _pod_name(given: str) -> str:
    kind, _, name = given.rpartition("/")
    if kind not in POD_PREFIXES:
        raise ConfigError(f"{given!r} is not a pod", remedy="name a pod, and its namespace with -n")
    return name


def _configured(options: ExplainOptions) -> tuple[Configuration, dict[str, Profile]]:
    """Return the configuration; without a file the default profile, for `default-scheduler` and for our own name."""
    if options.config is not None:
        return profile_loader.read_configuration(options.config, options.plugin_path, options.feature_gates)
    configuration, profiles = profile_loader.defaults(options.feature_gates)
    return configuration, profiles | {profile_loader.OWN_NAME: next(iter(profiles.values()))}


def _read_objects(options: ExplainOptions, profiles: dict[str, Profile]) -> tuple[list[Object], str]:
    """Return the objects that a decision reads, and the namespace of the pods."""
    brought = plugin_kinds.brought(profiles.values())
    if options.files:
        objects, _ = cluster_objects.from_files(options.files, brought, _warn)
        return objects, options.namespace or "default"
    wanted = frozenset[str]().union(*(profile.reads for profile in profiles.values()))
    with Console(stderr=True).status("reading the cluster"):
        objects, own = cluster_objects.from_cluster(
            wanted, kubeconfig=options.kubeconfig, context=options.context, brought=brought, on_problem=_warn
        )
    return objects, options.namespace or own


def _warn(problem: str) -> None:
    click.echo(f"warning: {problem}", err=True)


def _explain_pending(snapshot: Snapshot, options: ExplainOptions, namespace: str, extenders: list[str]) -> int:
    pending = [pod for pod in snapshot.pods.values() if pod.pending and namespace in ("", pod.namespace)]
    others = {pod.key: pod.scheduler_name for pod in pending if pod.scheduler_name not in snapshot.profiles}
    if others:
        names = ", ".join(sorted(set(others.values())))
        click.echo(f"Left out: {len(others)} pod(s) of schedulers that have no profile here: {names}", err=True)
    ours = [pod for pod in pending if pod.key not in others]
    notes = Console(stderr=True)
    answers = [snapshot.answer(pod) for pod in track(ours, "deciding", console=notes, disable=not sys.stderr.isatty())]
    if options.output == "table":
        show_all(Console(highlight=False, markup=False), answers)
    else:
        items = [_as_json(answer) for answer in answers]
        more = {"extendersNotAsked": extenders, "otherSchedulers": others}
        json_output.echo(
            {"apiVersion": json_output.VERSION, "kind": "DecisionList", "items": items} | more, options.output
        )
    return 0 if all(answer.node is not None for answer in answers) else 1
